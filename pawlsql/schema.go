package pawlsql

import "strings"

// Schema is the DDL of the inbox's table and its index, for your migration tool.
// Nothing here runs DDL. On MySQL it is one statement.
func (in *Inbox) Schema() string { return fill(inboxSchemas[in.dialect], in.table, in.bare) }

func fill(schema, table, bare string) string {
	return strings.NewReplacer("{table}", table, "{name}", bare).Replace(strings.TrimPrefix(schema, "\n"))
}

// The columns of MySQL that are compared are bytes: its collations take "a" for "A",
// and even the binary ones take "a " for "a".
var inboxSchemas = map[Dialect]string{
	Postgres: `
CREATE TABLE {table} (
  consumer     text        NOT NULL,
  job_key      text        NOT NULL,
  processed_at timestamptz NOT NULL,
  result       json,
  PRIMARY KEY (consumer, job_key)
);
CREATE INDEX {name}_processed ON {table} (processed_at);
`,
	MySQL: `
CREATE TABLE {table} (
  consumer     VARBINARY(255) NOT NULL,
  job_key      VARBINARY(512) NOT NULL,
  processed_at DATETIME(6)    NOT NULL COMMENT 'UTC',
  result       LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  again        BOOLEAN        NOT NULL DEFAULT FALSE COMMENT 'what a duplicate changes, to be told from the first',
  PRIMARY KEY (consumer, job_key),
  INDEX {name}_processed (processed_at)
) ENGINE = InnoDB;
`,
	SQLite: `
CREATE TABLE {table} (
  consumer     TEXT    NOT NULL,
  job_key      TEXT    NOT NULL,
  processed_at INTEGER NOT NULL, -- ms since 1970, UTC
  result       TEXT,
  PRIMARY KEY (consumer, job_key)
);
CREATE INDEX {name}_processed ON {table} (processed_at);
`,
}
