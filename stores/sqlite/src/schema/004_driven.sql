-- Threads that somebody drives: what a crash cut is found by it, however many threads there are. It holds what runs now.
CREATE INDEX documents_of_drivers ON documents (owner_no) WHERE kind = 0 AND namespace = 'system/run' AND key = 'active';
