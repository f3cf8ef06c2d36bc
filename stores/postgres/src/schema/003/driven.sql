-- Threads that somebody drives: what a crash cut is found by it, however many threads there are. It holds what runs now.
CREATE INDEX thread_documents_of_drivers ON threadkeep.thread_documents (thread_no)
  WHERE namespace = 'system/run' AND key = 'active';
