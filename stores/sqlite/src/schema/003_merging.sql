-- While nobody commits, segments of an index are merged wherever two of a size lie side by side: each term of a question is
-- looked up in every segment, so that few large ones answer several times as fast as many. (Writers leave up to eight.)
INSERT INTO message_terms (message_terms, rank) VALUES ('usermerge', 2);
INSERT INTO entry_terms (entry_terms, rank) VALUES ('usermerge', 2);
