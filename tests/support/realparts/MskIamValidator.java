import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * The broker's side of Amazon MSK's IAM authentication, with access keys of system properties in place of
 * IAM: a token is the URL of a presigned request (Signature Version 4) in base64. The principal is the access key.
 */
public class MskIamValidator implements AuthenticateCallbackHandler {
    private static final DateTimeFormatter STAMP =
            DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
    }

    @Override
    public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (!(callback instanceof OAuthBearerValidatorCallback asked)) {
                throw new UnsupportedCallbackException(callback);
            }
            try {
                asked.token(validated(asked.tokenValue()));
            } catch (Exception problem) {
                asked.error("invalid_token", null, null);
            }
        }
    }

    private OAuthBearerToken validated(String token) throws Exception {
        URI url = URI.create(new String(Base64.getUrlDecoder().decode(token), StandardCharsets.UTF_8));
        Map<String, String> fields = new TreeMap<>();
        for (String pair : url.getRawQuery().split("&")) {
            String[] parts = pair.split("=", 2);
            fields.put(URLDecoder.decode(parts[0], StandardCharsets.UTF_8),
                    URLDecoder.decode(parts[1], StandardCharsets.UTF_8));
        }
        require(fields.remove("User-Agent") != null, "User-Agent");
        String signature = fields.remove("X-Amz-Signature");
        String[] scope = fields.get("X-Amz-Credential").split("/");
        String region = System.getProperty("msk.region");
        require(url.getScheme().equals("https"), "scheme");
        require(url.getHost().equals("kafka." + region + ".amazonaws.com"), "host");
        require(fields.get("Action").equals("kafka-cluster:Connect"), "action");
        require(fields.get("X-Amz-Algorithm").equals("AWS4-HMAC-SHA256"), "algorithm");
        require(fields.get("X-Amz-SignedHeaders").equals("host"), "signed headers");
        require(scope[2].equals(region) && scope[3].equals("kafka-cluster"), "scope");
        Instant began = Instant.from(STAMP.parse(fields.get("X-Amz-Date")));
        Instant ends = began.plusSeconds(Math.min(900, Long.parseLong(fields.get("X-Amz-Expires"))));
        require(Instant.now().plusSeconds(300).isAfter(began) && Instant.now().isBefore(ends), "time");
        StringBuilder query = new StringBuilder();
        for (Map.Entry<String, String> field : fields.entrySet()) {
            query.append(query.isEmpty() ? "" : "&").append(encoded(field.getKey())).append('=')
                    .append(encoded(field.getValue()));
        }
        String canonical = "GET\n/\n" + query + "\nhost:" + url.getHost() + "\n\nhost\n" + digest("");
        String credentialScope = String.join("/", List.of(scope).subList(1, scope.length));
        String toSign = "AWS4-HMAC-SHA256\n" + fields.get("X-Amz-Date") + "\n" + credentialScope + "\n"
                + digest(canonical);
        byte[] key = ("AWS4" + System.getProperty("msk.secret." + scope[0])).getBytes(StandardCharsets.UTF_8);
        for (String part : List.of(scope).subList(1, scope.length)) {
            key = mac(key, part);
        }
        require(MessageDigest.isEqual(HexFormat.of().formatHex(mac(key, toSign)).getBytes(), signature.getBytes()),
                "signature");
        return new Validated(token, scope[0], began.toEpochMilli(), ends.toEpochMilli());
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new IllegalArgumentException(what);
        }
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A")
                .replace("%7E", "~");
    }

    private static String digest(String text) throws Exception {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    }

    private static byte[] mac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void close() {
    }

    private record Validated(String value, String principalName, Long startTimeMs, long lifetimeMs)
            implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }
    }
}
