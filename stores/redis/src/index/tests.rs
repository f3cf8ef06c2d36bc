//! Compares the index with a plain model, with small segments and buckets, so that few messages reach every case.
use std::collections::{BTreeMap, BTreeSet};

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Value};
use threadkeep_redis_server::Server;

use super::postings::{Flush, Sizes, bucket_field, five, read_five, read_postings};
use super::{joined, parse_oldest};
use crate::connection::LIBRARY;
use crate::keys::{EVERYONE, MessageTerm, message_term};

const OWNERS: [[u8; 8]; 3] = [*b"owner--1", *b"owner--2", *b"owner--3"];
const THREADS: usize = 6;
const WORDS: usize = 60;
const SMALL: Sizes = Sizes { bucket: 60, postings: 6, first_buckets: 1, splits: 2 };

/// A repeatable sequence of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// Draws terms; low numbers are more frequent.
    fn terms(&mut self) -> BTreeSet<MessageTerm> {
        let count = self.below(12);
        (0..count).map(|_| self.below(WORDS) * self.below(WORDS) / WORDS).map(term).collect()
    }
}

fn term(word: usize) -> MessageTerm {
    message_term(&format!("word{word}"))
}

fn incarnation(thread: usize) -> [u8; 16] {
    [u8::try_from(thread).unwrap() + 1; 16]
}

fn owner(thread: usize) -> [u8; 8] {
    OWNERS[thread % OWNERS.len()]
}

struct Index {
    connection: MultiplexedConnection,
    /// The terms of each message, by thread and position.
    model: BTreeMap<(usize, u64), BTreeSet<MessageTerm>>,
    /// The last position of each thread.
    last: [u64; THREADS],
}

impl Index {
    async fn call<T: FromRedisValue>(&mut self, function: &str, args: &[Vec<u8>]) -> T {
        let mut command = redis::cmd("FCALL");
        command.arg(format!("threadkeep_test_{function}")).arg(1).arg("index").arg(args);
        command.query_async(&mut self.connection).await.unwrap()
    }

    /// Flushes a list once. Returns whether its log was long.
    async fn flush(&mut self, list: [u8; 8]) -> bool {
        let reply: Value = self.call("index_oldest", &[list.to_vec()]).await;
        let Some(oldest) = parse_oldest(reply).unwrap() else { return false };
        let mut buckets = BTreeMap::new();
        for number in oldest.buckets_to_read(SMALL).unwrap() {
            let mut read = redis::cmd("HGET");
            read.arg("index:l").arg([list.as_slice(), &bucket_field(number)].concat());
            let bucket: Option<Vec<u8>> = read.query_async(&mut self.connection).await.unwrap();
            buckets.insert(number, bucket.unwrap_or_default());
        }
        let Flush { buckets, bytes, fields } = oldest.flush(buckets, SMALL).unwrap();
        let numbers = [oldest.first, oldest.corrections, oldest.segments.len() as u64, buckets, bytes];
        let mut args = vec![list.to_vec()];
        args.extend(numbers.map(|number| number.to_string().into_bytes()));
        args.extend(fields.into_iter().flat_map(|(field, content)| [field, content]));
        assert_eq!(self.call::<u64>("index_flush", &args).await, 1);
        assert_eq!(self.call::<u64>("index_flush", &args).await, 0, "the log was flushed already");
        true
    }

    async fn flush_all(&mut self, thread: usize) {
        for list in [owner(thread), EVERYONE] {
            while self.flush(list).await {}
        }
    }

    async fn append(&mut self, thread: usize, messages: Vec<BTreeSet<MessageTerm>>) {
        let before = self.last[thread];
        let count = messages.len() as u64;
        let mut args = vec![owner(thread).to_vec(), incarnation(thread).to_vec(), vec![7; 16]];
        args.extend([before, before + count].map(|number| number.to_string().into_bytes()));
        for (seq, terms) in (before + 1..).zip(messages) {
            args.extend([seq.to_string().into_bytes(), joined(&terms)]);
            self.model.insert((thread, seq), terms);
        }
        self.last[thread] += count;
        let reply: (u64, u64) = self.call("index_add", &args).await;
        assert_eq!(reply.0, before + count);
        // A repeated call adds nothing.
        assert_eq!(self.call::<(u64, u64)>("index_add", &args).await, (before + count, 0));
    }

    async fn edit(&mut self, (thread, seq): (usize, u64), terms: BTreeSet<MessageTerm>, is_removed: bool) {
        let old = self.model.insert((thread, seq), terms.clone()).unwrap();
        let mut from = "0".to_owned();
        while from != "done" {
            let mut args = vec![owner(thread).to_vec(), incarnation(thread).to_vec(), seq.to_string().into_bytes()];
            args.extend([joined(&terms), u8::from(is_removed).to_string().into_bytes(), from.clone().into_bytes()]);
            args.push(joined(&old.union(&terms).copied().collect()));
            let reply: Value = self.call("index_edit", &args).await;
            from = String::from_redis_value(reply).unwrap();
        }
    }

    async fn find(&mut self, list: [u8; 8], term: MessageTerm) -> (u64, BTreeSet<(u32, u32)>) {
        let args = [list.to_vec(), Vec::new(), b"100000".to_vec(), term.to_vec()];
        let (_, mut lists): (u64, Vec<Vec<Value>>) = self.call("index_search", &args).await;
        let mut list = lists.pop().unwrap().into_iter();
        let count = u64::from_redis_value(list.next().unwrap()).unwrap();
        let log = Vec::<u8>::from_redis_value(list.next().unwrap()).unwrap();
        let mut numbers: Vec<u64> = log.chunks_exact(5).map(read_five).collect();
        for postings in list {
            let postings = read_postings(&Vec::<u8>::from_redis_value(postings).unwrap());
            assert!(postings.is_sorted_by(|one, other| one > other), "{postings:?}");
            numbers.extend(postings);
        }
        assert_eq!(count, numbers.len() as u64);
        let args = [Vec::new(), numbers.into_iter().flat_map(five).collect()];
        let (items, _): (Vec<u8>, Vec<Value>) = self.call("index_messages", &args).await;
        let (items, _) = items.as_chunks::<8>();
        let position = |item: &[u8; 8]| {
            let [a, b, c, d, e, f, g, h] = *item;
            (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
        };
        (count, items.iter().map(position).collect())
    }

    /// Asserts that each term is found where the model has it.
    async fn compare(&mut self, threads: &[usize]) {
        for list in OWNERS.into_iter().chain([EVERYONE]) {
            for word in 0..WORDS {
                let term = term(word);
                let expected: BTreeSet<(u32, u32)> = self
                    .model
                    .iter()
                    .filter(|((thread, _), terms)| {
                        (list == EVERYONE || owner(*thread) == list) && terms.contains(&term)
                    })
                    .map(|((thread, seq), _)| {
                        let number = threads.iter().position(|other| other == thread).unwrap() + 1;
                        (u32::try_from(number).unwrap(), u32::try_from(*seq).unwrap())
                    })
                    .collect();
                let (count, found) = self.find(list, term).await;
                assert_eq!(found, expected, "word {word}");
                assert_eq!(count, expected.len() as u64, "word {word}");
            }
        }
        for ((thread, seq), terms) in self.model.clone() {
            let args = [owner(thread).to_vec(), incarnation(thread).to_vec(), seq.to_string().into_bytes()];
            let missing: u64 = self.call("index_check", &[args.as_slice(), &[joined(&terms)]].concat()).await;
            assert_eq!(missing, 0, "thread {thread}, position {seq}");
        }
    }
}

#[tokio::test]
async fn every_message_is_found_by_its_terms_alone() {
    let Some(server) = Server::start(&[]) else { return };
    let client = redis::Client::open(format!("redis://{}", server.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut library = LIBRARY.replace("@V@", "test");
    for (name, value, small) in [
        ("LOG_SEGMENT", 4_000, 150),
        ("LOG_SEGMENTS", 16, 3),
        ("FLUSHED_SEGMENTS", 3, 2),
        ("RECORD", 2_000, 25),
        ("STEP_TERMS", 50, 4),
        ("BLOCK", 500, 7),
        ("STEP_BLOCKS", 20, 2),
    ] {
        let line = format!("local {name} = {value}\n");
        assert!(library.contains(&line), "{line}");
        library = library.replace(&line, &format!("local {name} = {small}\n"));
    }
    redis::cmd("FUNCTION").arg("LOAD").arg(library).exec_async(&mut connection).await.unwrap();
    let mut index = Index { connection, model: BTreeMap::new(), last: [0; THREADS] };
    let mut random = Random(5);
    // The threads in the order of their numbers.
    let mut threads = Vec::new();
    for step in 0..900 {
        let thread = random.below(THREADS);
        match random.below(8) {
            0..=3 => {
                if !threads.contains(&thread) {
                    threads.push(thread);
                }
                let messages = (0..=random.below(3)).map(|_| random.terms()).collect();
                index.append(thread, messages).await;
            }
            4 | 5 => {
                let list = if random.below(2) == 0 { EVERYONE } else { owner(thread) };
                index.flush(list).await;
            }
            kind => {
                if index.last[thread] > 0 {
                    let seq = 1 + random.below(usize::try_from(index.last[thread]).unwrap()) as u64;
                    let terms = if kind == 6 { random.terms() } else { BTreeSet::new() };
                    index.edit((thread, seq), terms, false).await;
                }
            }
        }
        if step % 60 == 59 {
            index.compare(&threads).await;
        }
    }
    for (thread, seq) in index.model.keys().copied().collect::<Vec<_>>() {
        index.edit((thread, seq), BTreeSet::new(), true).await;
    }
    index.compare(&threads).await;
    for thread in 0..THREADS {
        let mut from = String::new();
        while from != "done" {
            let reply = index.call("index_drop", &[incarnation(thread).to_vec(), from.into_bytes()]).await;
            from = String::from_redis_value(reply).unwrap();
        }
        index.flush_all(thread).await;
    }
    // Of the lists, only their heads remain; of the messages, only the last block.
    let sizes: [u64; 4] = {
        let mut sizes = redis::pipe();
        for key in ["index:l", "index:h", "index:b", "index:d"] {
            sizes.cmd("HLEN").arg(key);
        }
        sizes.query_async(&mut index.connection).await.unwrap()
    };
    assert!(sizes[0] <= 4 * 4 && sizes[1] == 0 && sizes[2] == 0 && sizes[3] <= 1, "{sizes:?}");
}
