"""What ``make bench-spark`` runs: plans for clusters of every size, next to their certified bound and plain ways."""
