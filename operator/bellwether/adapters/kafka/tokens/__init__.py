"""Tokens for OAUTHBEARER: from a token endpoint, from a file, or signed with AWS credentials; cached and renewed."""
