// Package pawlsql joins pawl to a SQL database: PostgreSQL, MySQL, MariaDB or SQLite,
// through database/sql or pgx.
//
// # Outbox
//
// A transaction changes the database, and a job is to follow. Enqueued before the
// commit, the job runs even if that fails; enqueued after it, the job is lost if the
// program dies in between. An Outbox writes the job into a table, inside the
// transaction, and a Relay moves it to its queue: a job is enqueued if and only if the
// transaction commits, whether Redis is there at the time or not. See the example of
// Outbox.
//
// A row is enqueued once: under a unique key that is made from it, for 24 hours, so
// that a relay may die at any step. What a row cannot be enqueued for is not
// forgotten: it is kept, with the error beside it, and Relay.Retry takes it again.
//
//	SELECT id, queue, kind, failed_at, error FROM pawl_outbox WHERE failed_at IS NOT NULL
//
// Run a relay in each process that writes, and call Relay.Wake after the commit: the
// job is then on its way at once. Relays of other processes find the rows by polling.
// Alert on RelayStats. Upgrade the programs that run relays before those that write,
// so that rows can be read.
//
// # Inbox
//
// A job may run twice, as its queue delivers at least once. Where its effect is on a
// SQL database, an Inbox makes that happen once: the job's idempotency key is inserted
// first, in the same transaction, and if it is there already the work is done. See the
// examples of Inbox.Do and of DoResult. What the handler does outside of the database
// is not covered: give the other system the idempotency key.
//
// # The database
//
// The tables are in Schema, as text for your migration tool. Nothing here runs DDL. A
// role needs SELECT, INSERT, UPDATE and DELETE on its table: a relay no INSERT, and
// what only enqueues nothing but INSERT. Times are by the database's clock alone.
//
// On PostgreSQL a relay that is frozen in the middle of a batch loses its rows to the
// others after a minute; MySQL and MariaDB keep them locked until its connection ends
// (their wait_timeout says when, or the network), and relays need a binlog_format
// other than STATEMENT. On SQLite let one relay run, set a busy timeout, and use WAL;
// more relays do the same work, and each job is still enqueued once.
//
// A transaction that stays open for long holds back its own rows only. But a database
// that keeps old versions of rows for it, as all of them do, makes polls slower.
//
// With pgx, PGX is all that a transaction needs; what wants a *sql.DB (a
// Relay, Inbox.Do, Inbox.Prune) gets one from a pool by pgx's stdlib.OpenDBFromPool.
//
// The tests run on PostgreSQL 15, MariaDB 10.11 and SQLite 3.54.
package pawlsql
