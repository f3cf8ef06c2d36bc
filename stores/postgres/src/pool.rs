//! Connections, and how a call becomes one flight on one of them.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime, Timeouts, Transaction,
};
use futures::future::maybe_done;
use threadkeep_core::{Reason, Scope, StoreError, WakeUp};
use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{PostgresError, Result};
use crate::options::PostgresOptions;
use crate::{following::Following, lanes::Lanes, listen::Listener, notify::Outbox, tls};

/// Hints a slow listener may fall behind by before it is told "anything".
const WAKE_UP_BACKLOG: usize = 1024;
/// How much longer than the server's own limit an answer is waited for, so that the server is the one to end a statement.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// What `threadkeep.enter` would otherwise set for each transaction.
const SETTINGS: &str = "-c search_path=threadkeep,\\ pg_catalog -c enable_seqscan=off \
                        -c plan_cache_mode=force_generic_plan -c jit=off -c lock_timeout=10s";

/// A value for a statement, with its type: so told, a statement needs no round trip of its own to be understood.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// On whose behalf a transaction runs, as `threadkeep.enter` takes it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: String,
    pub(crate) name: String,
}

impl Caller {
    pub(crate) fn of(scope: &Scope) -> Self {
        let name = match scope {
            Scope::Tenant(_) => "tenant".to_owned(),
            Scope::User(_, user) => format!("user/{user}"),
        };
        Self { tenant: scope.tenant_id().as_str().to_owned(), name }
    }

    /// Maintenance, which sees every tenant.
    pub(crate) fn keeper() -> Self {
        Self { tenant: String::new(), name: "keeper".to_owned() }
    }
}

/// What all clones of a store share.
pub(crate) struct Shared {
    pool: Pool,
    tls: MakeRustlsConnect,
    pub(crate) options: PostgresOptions,
    pub(crate) wake_ups: broadcast::Sender<WakeUp>,
    pub(crate) outbox: Outbox,
    pub(crate) listener: Listener,
    pub(crate) lanes: Lanes,
    pub(crate) following: Following,
    /// Counts this process's commits, so that the keeper sees when nobody commits.
    pub(crate) activity: AtomicU64,
    pub(crate) active: Arc<Notify>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Shared {
    pub(crate) fn open(options: PostgresOptions) -> Result<Arc<Self>, StoreError> {
        let tls = tls::connector(&options.trust)?;
        let mut server = options.server.clone();
        server.connect_timeout(options.connect_timeout);
        if options.prepare && server.get_options().is_none() {
            // A pooler takes no options; there, and beyond the server's limit, our own patience ends the wait.
            server.options(format!("-c statement_timeout={}ms {SETTINGS}", options.statement_timeout.as_millis()));
        }
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(server, tls.clone(), recycling);
        let patience = Some(options.connect_timeout);
        let pool = Pool::builder(manager)
            .max_size(options.pool_size)
            // The connection that was used last has its plans at hand, in the server's memory and in its processor.
            .queue_mode(QueueMode::Lifo)
            .timeouts(Timeouts { wait: Some(options.statement_timeout), create: patience, recycle: patience })
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|_| StoreError::unavailable(Reason::Closed))?;
        Ok(Arc::new(Self {
            pool,
            tls,
            wake_ups: broadcast::Sender::new(WAKE_UP_BACKLOG),
            outbox: Outbox::default(),
            listener: Listener::default(),
            lanes: Lanes::of(options.pool_size),
            following: Following::default(),
            activity: AtomicU64::new(0),
            active: Arc::default(),
            tasks: Mutex::default(),
            options,
        }))
    }

    /// Keeps a task for as long as the store is open.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(task).abort_handle();
        self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(task);
    }

    pub(crate) fn note_activity(&self) {
        self.activity.fetch_add(1, Ordering::Relaxed);
        self.active.notify_one();
    }

    /// A connection of its own, past any pooler, and the task that drives it.
    pub(crate) async fn connect_directly(
        &self,
    ) -> Result<(Client, tokio_postgres::Connection<tokio_postgres::Socket, TlsStream>)> {
        let connecting = self.options.direct_server();
        let connecting = connecting.connect(self.tls.clone());
        let connected = tokio::time::timeout(self.options.connect_timeout, connecting).await;
        Ok(connected.map_err(|_| PostgresError::Silence)??)
    }

    /// Runs one statement that reads.
    pub(crate) async fn call(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let client = self.pool.get().await?;
        self.bounded(client, async |client| {
            let statement = self.statement(client, sql, parameters).await?;
            Ok(ask(client, &statement, sql, parameters).await?)
        })
        .await
    }

    /// Runs one statement that writes, all of it or nothing.
    pub(crate) async fn write(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, StoreError> {
        self.note_activity();
        self.call(sql, parameters).await.map_err(PostgresError::of_write)
    }

    /// Runs one statement with several sets of values that write, all of it or nothing, in one flight; one row each.
    pub(crate) async fn write_together(&self, sql: &str, sets: &[&[Parameter<'_>]]) -> Result<Vec<Row>> {
        let client = self.pool.get().await?;
        self.bounded(client, async |client| {
            let Some(first) = sets.first() else { return Ok(Vec::new()) };
            let statement = self.statement(client, sql, first).await?;
            let calls = sets.iter().map(|values| ask(client, &statement, sql, values));
            let (begun, rows, ended) =
                futures::join!(client.batch_execute("BEGIN"), in_order(calls), client.batch_execute("COMMIT"),);
            begun?;
            let rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
            ended?;
            Ok(rows.into_iter().flatten().collect())
        })
        .await
    }

    /// Runs statements that read, in the scope of a caller and in one snapshot, in one flight.
    pub(crate) async fn read(&self, caller: &Caller, statements: &[(&str, &[Parameter<'_>])]) -> Result<Vec<Vec<Row>>> {
        let client = self.pool.get().await?;
        self.bounded(client, async |client| {
            let entering = entering(caller);
            let enter = self.statement(client, ENTER, &entering).await?;
            let mut prepared = Vec::with_capacity(statements.len());
            for (sql, values) in statements {
                prepared.push(self.statement(client, sql, values).await?);
            }
            let reading =
                statements.iter().zip(&prepared).map(|((sql, values), prepared)| ask(client, prepared, sql, values));
            // All are sent before the first answer is waited for. Should one fail, the end undoes what there is of it.
            let (begun, entered, answers, ended) = futures::join!(
                client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
                ask(client, &enter, ENTER, &entering),
                in_order(reading),
                client.batch_execute("COMMIT"),
            );
            begun?;
            entered?;
            let answers = answers.into_iter().collect::<Result<_, _>>()?;
            ended?;
            Ok(answers)
        })
        .await
    }

    /// Runs work of several round trips in one transaction, on behalf of a caller.
    pub(crate) async fn transact<T>(
        &self,
        caller: Caller,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await.map_err(PostgresError::Early)?;
        transaction.query_typed(ENTER, &entering(&caller)).await?;
        let answer = work(&transaction).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    /// The statement as this connection has it prepared, where statements are.
    async fn statement(&self, client: &Object, sql: &str, parameters: &[Parameter<'_>]) -> Result<Option<Statement>> {
        if !self.options.prepare {
            return Ok(None);
        }
        let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
        Ok(Some(client.prepare_typed_cached(sql, &types).await.map_err(PostgresError::Early)?))
    }

    /// Waits for an answer as long as is allowed. A connection that did not answer is not used again: whoever came next
    /// would wait behind the same statement.
    async fn bounded<T>(&self, client: Object, work: impl AsyncFnOnce(&Object) -> Result<T>) -> Result<T> {
        let answer = tokio::time::timeout(self.options.statement_timeout + GRACE, work(&client)).await;
        let answer = answer.unwrap_or(Err(PostgresError::Silence));
        if answer.as_ref().is_err_and(PostgresError::spoils_the_connection) {
            drop(Object::take(client));
        }
        answer
    }
}

/// Runs futures at once, each begun before the one after it, so that what they send goes out in their order: what is sent
/// behind them, the end of a transaction, must not overtake one.
async fn in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| Box::pin(maybe_done(future))).collect();
    poll_fn(|context| {
        let mut are_done = true;
        for future in &mut running {
            are_done &= future.as_mut().poll(context).is_ready();
        }
        if are_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.iter_mut().filter_map(|future| future.as_mut().take_output()).collect()
}

/// Asks with a statement that is prepared, or with its text.
async fn ask(
    client: &Object,
    statement: &Option<Statement>,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    match statement {
        Some(statement) => {
            let values: Vec<_> = parameters.iter().map(|(value, _)| *value).collect();
            client.query(statement, &values).await
        }
        None => client.query_typed(sql, parameters).await,
    }
}

pub(crate) const ENTER: &str = "SELECT threadkeep.enter($1, $2)";

pub(crate) fn entering(caller: &Caller) -> [Parameter<'_>; 2] {
    [(&caller.tenant, Type::TEXT), (&caller.name, Type::TEXT)]
}

pub(crate) type TlsStream = <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<tokio_postgres::Socket>>::Stream;

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.close();
        for task in self.tasks.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner) {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn all_are_begun_in_order_before_what_comes_behind_them() {
        let begun = RefCell::new(Vec::new());
        let begun = &begun;
        let one = |number: usize| async move {
            begun.borrow_mut().push(number);
            tokio::task::yield_now().await;
            number * 2
        };
        let (answers, ()) = futures::join!(in_order((0..100).map(one)), async { begun.borrow_mut().push(100) });
        assert_eq!(answers, (0..100).map(|number| number * 2).collect::<Vec<_>>());
        assert_eq!(*begun.borrow(), (0..=100).collect::<Vec<_>>());
    }
}
