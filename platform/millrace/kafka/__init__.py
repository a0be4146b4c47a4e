"""Access to Kafka for every part of the platform: topics, positions, and a broker of our own for one machine."""
