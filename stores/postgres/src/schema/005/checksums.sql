-- A checksum of the message as it was written (CRC-32, made by the program); messages from before have none.
ALTER TABLE threadkeep.messages ADD COLUMN checksum integer;
