"""Options and help of the verbs that move leadership by hand."""
