"""Alert rules and the cases that test them."""
