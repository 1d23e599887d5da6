"""What a policy learned from earlier reconciles: known good times, past harm, flapping, and what moves cost."""
