package sqlstore

import "github.com/kubeop/kubeop/internal/store/database"

// Migrations returns the steps of the schema, written for SQLite. They use only TEXT, INTEGER, BLOB and REAL in STRICT tables, so that PostgreSQL gets
// the same with its own types. Times are microseconds since 1970, 0 for none.
func Migrations() []database.Migration {
	all := make([]database.Migration, len(migrations))
	for i, m := range migrations {
		all[i] = database.Migration{Name: m[0], Up: m[1]}
	}
	return all
}

// migrations has names and statements. Add new ones at the end.
var migrations = [][2]string{
	{"tokens", `CREATE TABLE tokens (
		id         TEXT PRIMARY KEY,
		name       TEXT NOT NULL,
		hash       BLOB NOT NULL UNIQUE,
		scopes     TEXT NOT NULL,
		tenant     TEXT NOT NULL,
		created    INTEGER NOT NULL,
		created_by TEXT NOT NULL,
		expires    INTEGER NOT NULL,
		last_used  INTEGER NOT NULL DEFAULT 0,
		revoked    INTEGER NOT NULL DEFAULT 0
	) STRICT;
	CREATE INDEX tokens_by_tenant ON tokens (tenant, id);
	CREATE TABLE setup (
		only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
		hash     BLOB NOT NULL,
		expires  INTEGER NOT NULL
	) STRICT;
	CREATE TABLE events (
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		at         INTEGER NOT NULL,
		actor      TEXT NOT NULL,
		action     TEXT NOT NULL,
		object     TEXT NOT NULL,
		tenant     TEXT NOT NULL,
		address    TEXT NOT NULL,
		request_id TEXT NOT NULL
	) STRICT;
	CREATE INDEX events_by_tenant ON events (tenant, id);`},
	{"requests", `ALTER TABLE events ADD COLUMN commit_hash TEXT NOT NULL DEFAULT '';
	CREATE TABLE requests (
		caller  TEXT NOT NULL,
		key     TEXT NOT NULL,
		hash    BLOB NOT NULL,
		created INTEGER NOT NULL,
		expires INTEGER NOT NULL,
		answer  BLOB,
		PRIMARY KEY (caller, key)
	) STRICT;
	CREATE INDEX requests_by_expiry ON requests (expires);`},
	{"keys", `CREATE TABLE sealed (
		kind TEXT NOT NULL,
		id   TEXT NOT NULL,
		key  TEXT NOT NULL,
		data BLOB NOT NULL,
		PRIMARY KEY (kind, id)
	) STRICT;
	CREATE TABLE signing_keys (
		id         TEXT PRIMARY KEY,
		created    INTEGER NOT NULL,
		used_from  INTEGER NOT NULL,
		used_until INTEGER NOT NULL
	) STRICT;`},
	{"events-by-object", `CREATE INDEX events_by_object ON events (object);
	CREATE INDEX events_by_actor ON events (actor);`},
	{"webhooks", `CREATE TABLE webhooks (
		id             TEXT PRIMARY KEY,
		name           TEXT NOT NULL,
		tenant         TEXT NOT NULL,
		url            TEXT NOT NULL,
		types          TEXT NOT NULL,
		disabled       INTEGER NOT NULL DEFAULT 0,
		disabled_reason TEXT NOT NULL DEFAULT '',
		created        INTEGER NOT NULL,
		created_by     TEXT NOT NULL,
		secret         TEXT NOT NULL,
		previous       TEXT NOT NULL DEFAULT '',
		previous_until INTEGER NOT NULL DEFAULT 0,
		parked_logged  INTEGER NOT NULL DEFAULT 0
	) STRICT;
	CREATE INDEX webhooks_by_tenant ON webhooks (tenant, id);
	CREATE TABLE webhook_deliveries (
		id            INTEGER PRIMARY KEY AUTOINCREMENT,
		webhook       TEXT NOT NULL,
		message       TEXT NOT NULL,
		type          TEXT NOT NULL,
		tenant        TEXT NOT NULL,
		object        TEXT NOT NULL,
		at            INTEGER NOT NULL,
		body          BLOB NOT NULL,
		state         TEXT NOT NULL,
		attempts      INTEGER NOT NULL DEFAULT 0,
		since         INTEGER NOT NULL,
		due           INTEGER NOT NULL,
		tried         INTEGER NOT NULL DEFAULT 0,
		ended         INTEGER NOT NULL DEFAULT 0,
		status        INTEGER NOT NULL DEFAULT 0,
		answer        TEXT NOT NULL DEFAULT '',
		claim         TEXT NOT NULL DEFAULT '',
		claimed_until INTEGER NOT NULL DEFAULT 0
	) STRICT;
	CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, id);
	CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (webhook, state, id);
	CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, due) WHERE state = 'waiting';
	CREATE INDEX webhook_deliveries_by_object ON webhook_deliveries (webhook, object, id) WHERE state = 'waiting';
	CREATE TABLE observed_states (
		object TEXT PRIMARY KEY,
		state  TEXT NOT NULL
	) STRICT;`},
	{"usage", `CREATE TABLE usage_places (
		id      INTEGER PRIMARY KEY AUTOINCREMENT,
		tenant  TEXT NOT NULL,
		project TEXT NOT NULL,
		app     TEXT NOT NULL,
		cluster TEXT NOT NULL,
		last    INTEGER NOT NULL,
		UNIQUE (tenant, project, app, cluster)
	) STRICT;
	CREATE INDEX usage_places_by_last ON usage_places (last);
	CREATE TABLE usage_hours (
		place   INTEGER NOT NULL,
		hour    INTEGER NOT NULL,
		amounts TEXT NOT NULL,
		PRIMARY KEY (place, hour)
	) STRICT;
	CREATE INDEX usage_hours_by_hour ON usage_hours (hour);
	CREATE TABLE usage_covered (
		hour        INTEGER NOT NULL,
		cluster     TEXT NOT NULL,
		meter_group TEXT NOT NULL,
		minutes     INTEGER NOT NULL,
		PRIMARY KEY (hour, cluster, meter_group)
	) STRICT;`},
	{"webhook-tenants", `ALTER TABLE webhooks ADD COLUMN tenant_uid TEXT NOT NULL DEFAULT '';
	ALTER TABLE webhooks ADD COLUMN tenant_gone INTEGER NOT NULL DEFAULT 0;`},
	{"kubeconfigs", `CREATE TABLE kubeconfigs (
		id         TEXT PRIMARY KEY,
		name       TEXT NOT NULL,
		tenant     TEXT NOT NULL,
		tenant_uid TEXT NOT NULL,
		project    TEXT NOT NULL,
		role       TEXT NOT NULL,
		secret_uid TEXT NOT NULL,
		life       INTEGER NOT NULL,
		created    INTEGER NOT NULL,
		created_by TEXT NOT NULL,
		in_groups  TEXT NOT NULL,
		expires    INTEGER NOT NULL
	) STRICT;
	CREATE INDEX kubeconfigs_by_project ON kubeconfigs (tenant, project, id);
	CREATE INDEX kubeconfigs_by_expiry ON kubeconfigs (expires);`},
	{"invoices", `CREATE TABLE invoices (
		number     INTEGER PRIMARY KEY,
		id         TEXT NOT NULL UNIQUE,
		tenant     TEXT NOT NULL,
		tenant_uid TEXT NOT NULL,
		month      TEXT NOT NULL,
		credits    INTEGER NOT NULL,
		currency   TEXT NOT NULL,
		net        TEXT NOT NULL,
		total      TEXT NOT NULL,
		reason     TEXT NOT NULL,
		closed     INTEGER NOT NULL,
		closed_by  TEXT NOT NULL,
		body       BLOB NOT NULL
	) STRICT;
	CREATE INDEX invoices_by_tenant ON invoices (tenant, number);
	CREATE INDEX invoices_by_month ON invoices (tenant, month, number);`},
	{"payers", `CREATE TABLE payers (
		uid        TEXT PRIMARY KEY,
		name       TEXT NOT NULL,
		created    INTEGER NOT NULL,
		gone       INTEGER NOT NULL,
		price_list TEXT NOT NULL
	) STRICT;
	CREATE INDEX payers_by_name ON payers (name, created);`},
	{"alerts", `CREATE TABLE alerts (
		id TEXT PRIMARY KEY,
		at INTEGER NOT NULL
	) STRICT;`},
}
