"""Commands that plan as the operator does, without it: plan, why, elect, and dry runs of others."""
