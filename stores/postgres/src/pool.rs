//! The connection pool, and the execution of calls in a single round trip.

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
use crate::{change_reader::ChangeReader, commit_batcher::CommitBatcher, listen::Listener, notify::Outbox, tls};

/// The number of wake-ups buffered for a slow listener. A listener that falls further behind receives
/// [`WakeUp::Unspecified`] instead.
const WAKE_UP_BACKLOG: usize = 1024;
/// Added to the server's statement timeout on the client side, so that normally the server cancels the statement.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The settings of each connection. On a connection without them, `threadkeep.enter` applies them in each transaction.
const SETTINGS: &str = "-c search_path=threadkeep,\\ pg_catalog -c enable_seqscan=off \
                        -c plan_cache_mode=force_generic_plan -c jit=off -c lock_timeout=10s";

/// A parameter of a statement, with its type. Given the types, preparing a statement takes no separate round trip.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The scope of a transaction, as passed to `threadkeep.enter`.
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

    /// Returns the caller for maintenance operations, which may access every tenant.
    pub(crate) fn maintenance() -> Self {
        Self { tenant: String::new(), name: "keeper".to_owned() }
    }
}

/// State shared by all clones of a store.
pub(crate) struct Shared {
    pool: Pool,
    tls: MakeRustlsConnect,
    pub(crate) options: PostgresOptions,
    pub(crate) wake_ups: broadcast::Sender<WakeUp>,
    pub(crate) outbox: Outbox,
    pub(crate) listener: Listener,
    pub(crate) commit_batcher: CommitBatcher,
    pub(crate) change_reader: ChangeReader,
    /// The number of writes by this instance. The background task uses it to detect idle periods.
    pub(crate) activity: AtomicU64,
    /// Notified of each write.
    pub(crate) active: Arc<Notify>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Shared {
    pub(crate) fn open(options: PostgresOptions) -> Result<Arc<Self>, StoreError> {
        let tls = tls::connector(&options.trust)?;
        let mut server = options.server.clone();
        server.connect_timeout(options.connect_timeout);
        if options.prepare && server.get_options().is_none() {
            // Poolers reject options. Without them, and if the server does not respond, the timeout in `bounded` applies.
            server.options(format!("-c statement_timeout={}ms {SETTINGS}", options.statement_timeout.as_millis()));
        }
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(server, tls.clone(), recycling);
        let connect_timeout = Some(options.connect_timeout);
        let pool = Pool::builder(manager)
            .max_size(options.pool_size)
            // The most recently used connection is the most likely to have its plans in the server's CPU caches.
            .queue_mode(QueueMode::Lifo)
            .timeouts(Timeouts {
                wait: Some(options.statement_timeout),
                create: connect_timeout,
                recycle: connect_timeout,
            })
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|_| StoreError::unavailable(Reason::Closed))?;
        Ok(Arc::new(Self {
            pool,
            tls,
            wake_ups: broadcast::Sender::new(WAKE_UP_BACKLOG),
            outbox: Outbox::default(),
            listener: Listener::default(),
            commit_batcher: CommitBatcher::new(options.pool_size),
            change_reader: ChangeReader::default(),
            activity: AtomicU64::new(0),
            active: Arc::default(),
            tasks: Mutex::default(),
            options,
        }))
    }

    /// Spawns a task that is aborted when the store is closed.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(task).abort_handle();
        self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(task);
    }

    pub(crate) fn note_activity(&self) {
        self.activity.fetch_add(1, Ordering::Relaxed);
        self.active.notify_one();
    }

    /// Opens a connection outside the pool that bypasses any pooler. The caller must drive the returned future.
    pub(crate) async fn connect_directly(
        &self,
    ) -> Result<(Client, tokio_postgres::Connection<tokio_postgres::Socket, TlsStream>)> {
        let server = self.options.direct_server();
        let result = tokio::time::timeout(self.options.connect_timeout, server.connect(self.tls.clone())).await;
        Ok(result.map_err(|_| PostgresError::NoResponse)??)
    }

    /// Runs one statement.
    pub(crate) async fn call(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let client = self.pool.get().await?;
        self.bounded(client, async |client| {
            let statement = self.statement(client, sql, parameters).await?;
            Ok(query(client, &statement, sql, parameters).await?)
        })
        .await
    }

    /// Runs one statement that writes, atomically.
    pub(crate) async fn write(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, StoreError> {
        self.note_activity();
        self.call(sql, parameters).await.map_err(PostgresError::into_write_error)
    }

    /// Runs a writing statement once for each parameter list, in one transaction and one round trip. Returns one row
    /// for each list.
    pub(crate) async fn write_batch(&self, sql: &str, lists: &[&[Parameter<'_>]]) -> Result<Vec<Row>> {
        let client = self.pool.get().await?;
        self.bounded(client, async |client| {
            let Some(first) = lists.first() else { return Ok(Vec::new()) };
            let statement = self.statement(client, sql, first).await?;
            let calls = lists.iter().map(|parameters| query(client, &statement, sql, parameters));
            let (begin, rows, commit) =
                futures::join!(client.batch_execute("BEGIN"), join_in_order(calls), client.batch_execute("COMMIT"),);
            begin?;
            let rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
            commit?;
            Ok(rows.into_iter().flatten().collect())
        })
        .await
    }

    /// Runs reading statements in the caller's scope, in one snapshot and one round trip.
    pub(crate) async fn read(&self, caller: &Caller, statements: &[(&str, &[Parameter<'_>])]) -> Result<Vec<Vec<Row>>> {
        let client = self.pool.get().await?;
        self.bounded(client, async |client| {
            let enter_parameters = enter_parameters(caller);
            let enter = self.statement(client, ENTER, &enter_parameters).await?;
            let mut prepared = Vec::with_capacity(statements.len());
            for (sql, parameters) in statements {
                prepared.push(self.statement(client, sql, parameters).await?);
            }
            let reads = statements
                .iter()
                .zip(&prepared)
                .map(|((sql, parameters), prepared)| query(client, prepared, sql, parameters));
            // All statements are sent before the first response arrives. If one fails, the COMMIT rolls back.
            let (begin, entered, results, commit) = futures::join!(
                client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
                query(client, &enter, ENTER, &enter_parameters),
                join_in_order(reads),
                client.batch_execute("COMMIT"),
            );
            begin?;
            entered?;
            let results = results.into_iter().collect::<Result<_, _>>()?;
            commit?;
            Ok(results)
        })
        .await
    }

    /// Runs `work`, which may take several round trips, in one transaction in the caller's scope.
    pub(crate) async fn transact<T>(
        &self,
        caller: Caller,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await.map_err(PostgresError::BeforeSend)?;
        transaction.query_typed(ENTER, &enter_parameters(&caller)).await?;
        let result = work(&transaction).await?;
        transaction.commit().await?;
        Ok(result)
    }

    /// Returns the statement prepared on this connection; `None` if `prepare` is off.
    async fn statement(&self, client: &Object, sql: &str, parameters: &[Parameter<'_>]) -> Result<Option<Statement>> {
        if !self.options.prepare {
            return Ok(None);
        }
        let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
        Ok(Some(client.prepare_typed_cached(sql, &types).await.map_err(PostgresError::BeforeSend)?))
    }

    /// Runs work on a connection with a timeout. A connection that did not respond is closed, because the next call on it would
    /// wait for the same statement.
    async fn bounded<T>(&self, client: Object, work: impl AsyncFnOnce(&Object) -> Result<T>) -> Result<T> {
        let result = tokio::time::timeout(self.options.statement_timeout + GRACE, work(&client)).await;
        let result = result.unwrap_or(Err(PostgresError::NoResponse));
        if result.as_ref().is_err_and(PostgresError::breaks_connection) {
            drop(Object::take(client));
        }
        result
    }
}

/// Runs futures concurrently and starts them in order, so that their statements are sent in this order and before a COMMIT
/// that is started after them.
async fn join_in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| Box::pin(maybe_done(future))).collect();
    poll_fn(|context| {
        let mut all_done = true;
        for future in &mut running {
            all_done &= future.as_mut().poll(context).is_ready();
        }
        if all_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.iter_mut().filter_map(|future| future.as_mut().take_output()).collect()
}

/// Runs the prepared statement, or `sql` if there is none.
async fn query(
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

pub(crate) fn enter_parameters(caller: &Caller) -> [Parameter<'_>; 2] {
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
    async fn join_in_order_starts_futures_in_order() {
        let started = RefCell::new(Vec::new());
        let started = &started;
        let one = |number: usize| async move {
            started.borrow_mut().push(number);
            tokio::task::yield_now().await;
            number * 2
        };
        let (results, ()) = futures::join!(join_in_order((0..100).map(one)), async { started.borrow_mut().push(100) });
        assert_eq!(results, (0..100).map(|number| number * 2).collect::<Vec<_>>());
        assert_eq!(*started.borrow(), (0..=100).collect::<Vec<_>>());
    }
}
