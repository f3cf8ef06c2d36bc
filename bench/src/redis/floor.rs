//! The baseline (floor): a handwritten function that writes a turn, and a pipeline that reads the newest messages. They make no checks,
//! maintain no index, and wake no subscribers.

use std::time::{Instant, SystemTime};

use anyhow::{Result, ensure};
use redis::aio::MultiplexedConnection;
use threadkeep_core::ThreadId;
use uuid::Uuid;

use crate::random::Random;

/// Writes what a turn writes: to the thread its row with the revision, two messages, their ids, the change and its key; to the lists of
/// the tenant, if an owner is named, the thread in the lists of changed and of live threads, what the lists know of it, the last number of a
/// change, the message counts, and that the thread has to be indexed.
const FUNCTION: &str = "#!lua name=threadkeep_bench
redis.register_function('threadkeep_bench_turn', function(keys, args)
  local base = keys[1]
  redis.call('HSET', base .. ':t', 'rev', args[1], 'row', args[2], 'seq', args[3], 'first', '1')
  redis.call('HSET', base .. ':m', args[4], args[5], args[3], args[6])
  redis.call('HSET', base .. ':i', args[7], args[4], args[8], args[3])
  redis.call('HSET', base .. ':c', args[9], args[10])
  redis.call('HSET', base .. ':k', args[11], args[9])
  local owner = args[12]
  if owner == '' then return 1 end
  local lists, id, stamp = keys[2], args[13], args[14]
  for _, list in ipairs({':s', ':r'}) do
    redis.call('ZADD', lists .. list, stamp, id)
    redis.call('ZADD', lists .. list .. ':' .. owner, stamp, id)
  end
  redis.call('HSET', lists .. ':i', id, args[15])
  redis.call('HSET', lists .. ':n', 'last', stamp)
  redis.call('HINCRBY', lists .. ':m', owner, 2)
  redis.call('HINCRBY', lists .. ':m', '', 2)
  redis.call('SADD', lists .. ':u', id)
  return 1
end)";

/// A connection, and the bytes that the engine writes for a turn.
pub(super) struct Floor {
    connection: MultiplexedConnection,
    row: Vec<u8>,
    messages: [Vec<u8>; 2],
    change: Vec<u8>,
    /// What the lists know of a thread.
    info: Vec<u8>,
}

/// Whether a turn of the floor also writes to the lists of the tenant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    Written,
    Omitted,
}

impl Floor {
    /// Copies the bytes from a thread to which the engine has written one turn.
    pub(super) async fn open(url: &str, base: &str, (lists, thread): (&str, ThreadId)) -> Result<Self> {
        let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        redis::cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(FUNCTION).exec_async(&mut connection).await?;
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGET").arg(format!("{base}:t")).arg("row");
        pipeline.cmd("HMGET").arg(format!("{base}:m")).arg(1).arg(2);
        pipeline.cmd("HGET").arg(format!("{base}:c")).arg(1);
        pipeline.cmd("HGET").arg(format!("{lists}:i")).arg(thread.to_string());
        let (row, messages, change, info): (Vec<u8>, [Vec<u8>; 2], Vec<u8>, Vec<u8>) =
            pipeline.query_async(&mut connection).await?;
        ensure!(!row.is_empty() && !change.is_empty() && !info.is_empty(), "the thread has no turn");
        Ok(Self { connection, row, messages, change, info })
    }

    /// Appends turns to one thread.
    pub(super) async fn turns(&self, until: Instant, lists: Lists) -> Result<usize> {
        let (thread, owner) = (Uuid::new_v4().to_string(), format!("u/{}", Uuid::new_v4()));
        let mut done = 0;
        while Instant::now() < until {
            self.turn(&thread, if lists == Lists::Written { &owner } else { "" }, done).await?;
            done += 1;
        }
        Ok(done)
    }

    /// Appends turns to random threads of one owner.
    pub(super) async fn scattered_turns(&self, until: Instant, threads: usize) -> Result<usize> {
        let (mut random, mut done) = (Random::new(crate::random::fresh_seed()), 0);
        while Instant::now() < until {
            self.turn(&random.index(threads).to_string(), "u/bea", done).await?;
            done += 1;
        }
        Ok(done)
    }

    /// `owner` is empty to omit the lists.
    async fn turn(&self, thread: &str, owner: &str, number: usize) -> Result<()> {
        let mut turn = redis::cmd("FCALL");
        turn.arg("threadkeep_bench_turn").arg(2).arg(format!("bench:{{{thread}}}")).arg("bench:lists");
        turn.arg(Uuid::new_v4().simple().to_string()).arg(&self.row);
        turn.arg(2 * number + 2).arg(2 * number + 1).arg(&self.messages[0]).arg(&self.messages[1]);
        for _ in 0..2 {
            turn.arg(Uuid::new_v4().as_bytes().as_slice());
        }
        turn.arg(number + 1).arg(&self.change).arg(Uuid::new_v4().as_bytes().as_slice());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        turn.arg(owner).arg(thread).arg(now.as_micros().to_string()).arg(&self.info);
        turn.exec_async(&mut self.connection.clone()).await?;
        Ok(())
    }

    /// Reads the row and the newest messages of one of the engine's threads, by their known positions.
    pub(super) async fn newest(&self, base: &str, messages: usize) -> Result<()> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("HMGET").arg(format!("{base}:t")).arg("row").arg("seq");
        pipeline.cmd("HMGET").arg(format!("{base}:m"));
        for seq in messages.saturating_sub(15)..=messages {
            pipeline.arg(seq);
        }
        let (_, rows): (Vec<Vec<u8>>, Vec<Vec<u8>>) = pipeline.query_async(&mut self.connection.clone()).await?;
        ensure!(rows.len() == 16, "the read did not return 16 messages");
        Ok(())
    }
}
