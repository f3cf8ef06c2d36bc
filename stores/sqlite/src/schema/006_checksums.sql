-- A checksum of the message as it was written; messages from before have none. NULL beside a tombstone.
ALTER TABLE messages ADD COLUMN checksum INTEGER;
