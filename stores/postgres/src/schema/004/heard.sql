-- It says whether anybody listens from this version on, and a function cannot change the type of its answer.
DROP FUNCTION IF EXISTS threadkeep.tell(text[]);
