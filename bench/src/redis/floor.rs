//! The baseline (floor): a handwritten function that writes a turn, and a pipeline that reads the newest messages. They make no checks,
//! maintain no lists or index, and wake no subscribers.

use std::time::Instant;

use anyhow::{Result, ensure};
use redis::aio::MultiplexedConnection;
use uuid::Uuid;

use crate::random::Random;

/// Writes the same data to a thread as a turn: the row with its revision, two messages, their ids, the change and its key.
const FUNCTION: &str = "#!lua name=threadkeep_bench
redis.register_function('threadkeep_bench_turn', function(keys, args)
  local base = keys[1]
  redis.call('HSET', base .. ':t', 'rev', args[1], 'row', args[2], 'seq', args[3], 'first', '1')
  redis.call('HSET', base .. ':m', args[4], args[5], args[3], args[6])
  redis.call('HSET', base .. ':i', args[7], args[4], args[8], args[3])
  redis.call('HSET', base .. ':c', args[9], args[10])
  redis.call('HSET', base .. ':k', args[11], args[9])
  return 1
end)";

/// A connection, and the bytes that the engine writes for a turn.
pub(super) struct Floor {
    connection: MultiplexedConnection,
    row: Vec<u8>,
    messages: [Vec<u8>; 2],
    change: Vec<u8>,
}

impl Floor {
    /// Copies the bytes from a thread to which the engine has written one turn.
    pub(super) async fn open(url: &str, base: &str) -> Result<Self> {
        let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        redis::cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(FUNCTION).exec_async(&mut connection).await?;
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGET").arg(format!("{base}:t")).arg("row");
        pipeline.cmd("HMGET").arg(format!("{base}:m")).arg(1).arg(2);
        pipeline.cmd("HGET").arg(format!("{base}:c")).arg(1);
        let (row, messages, change): (Vec<u8>, [Vec<u8>; 2], Vec<u8>) = pipeline.query_async(&mut connection).await?;
        ensure!(!row.is_empty() && !change.is_empty(), "the thread has no turn");
        Ok(Self { connection, row, messages, change })
    }

    /// Appends turns to one thread.
    pub(super) async fn turns(&self, until: Instant) -> Result<usize> {
        let base = format!("bench:{{{}}}", Uuid::new_v4());
        let mut done = 0;
        while Instant::now() < until {
            self.turn(&base, done).await?;
            done += 1;
        }
        Ok(done)
    }

    /// Appends turns to random threads.
    pub(super) async fn scattered_turns(&self, until: Instant, threads: usize) -> Result<usize> {
        let (mut random, mut done) = (Random::new(crate::random::fresh_seed()), 0);
        while Instant::now() < until {
            self.turn(&format!("bench:{{{}}}", random.index(threads)), done).await?;
            done += 1;
        }
        Ok(done)
    }

    async fn turn(&self, base: &str, number: usize) -> Result<()> {
        let mut turn = redis::cmd("FCALL");
        turn.arg("threadkeep_bench_turn").arg(1).arg(base).arg(Uuid::new_v4().simple().to_string()).arg(&self.row);
        turn.arg(2 * number + 2).arg(2 * number + 1).arg(&self.messages[0]).arg(&self.messages[1]);
        for _ in 0..2 {
            turn.arg(Uuid::new_v4().as_bytes().as_slice());
        }
        turn.arg(number + 1).arg(&self.change).arg(Uuid::new_v4().as_bytes().as_slice());
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
