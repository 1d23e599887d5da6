"""What ``make bench-spark`` runs: plans for clusters of every size, beside their certified bound and plain ways."""
