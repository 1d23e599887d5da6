"""Certificate probe: until when the certificates of a broker's listeners are valid."""
