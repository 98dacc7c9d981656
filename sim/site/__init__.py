"""What a site's own log says: how far simulated schedules are from it, and advice to its users."""
