// Package postgres opens a store in PostgreSQL, for one manager or several. It uses pgx as a driver of database/sql, so that it shares the statements
// of SQLite. database/sql also limits the connections, and replaces broken ones.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
)

const (
	// connections is how many connections a manager has at most.
	connections = 16
	// idle is how many idle connections it keeps, and for how long. old is the age at which a connection is replaced, so that after a failover all
	// lead to the new server.
	idle     = 8
	idleTime = 5 * time.Minute
	old      = 30 * time.Minute
	// connectTimeout is how long connecting to one address may take.
	connectTimeout = 5 * time.Second
	// minVersion is the oldest PostgreSQL, in the form of server_version_num: 14 has idle_session_timeout.
	minVersion = 140000
)

// startup has the settings at the start of a connection, unless the URL has others. PgBouncer accepts these, but refuses those of settings at the
// start.
var startup = map[string]string{"application_name": "kubeop-manager", "client_encoding": "UTF8"}

// settings are made after the connection is established, unless the URL has others. The tcp_keepalives let the server notice a dead client. A manager
// that hangs in a transaction keeps its locks until idle_in_transaction_session_timeout, which is shorter than statement_timeout, so that others who
// wait for the locks get them. Long transactions have neither of these timeouts.
var settings = map[string]string{
	"statement_timeout": "15s", "idle_in_transaction_session_timeout": "10s", "tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3",
}

// Open connects to the database at a URL, and migrates it. The database must exist.
func Open(ctx context.Context, address string) (*sqlstore.Store, error) {
	db, err := Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	s, err := sqlstore.Open(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// Connect connects to the database at a URL, and does not migrate it.
func Connect(ctx context.Context, address string) (*database.DB, error) {
	pool, err := openPool(address)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	var version int
	var encoding string
	err = pool.QueryRowContext(limited, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`).Scan(&version, &encoding)
	switch {
	case err != nil:
		err = fmt.Errorf("connecting to the database of DATABASE_URL: %w", err)
	case version < minVersion:
		err = fmt.Errorf("the database of DATABASE_URL is PostgreSQL %d; it must be 14 or newer", version/10000)
	case encoding != "UTF8":
		err = fmt.Errorf("the database of DATABASE_URL has the encoding %s; it must be one with ENCODING 'UTF8'", encoding)
	default:
		return database.New(pool, dialect), nil
	}
	return nil, errors.Join(err, pool.Close())
}

// openPool opens the pool of connections to the database at a URL.
func openPool(address string) (*sql.DB, error) {
	config, err := Parse(address)
	if err != nil {
		return nil, err
	}
	// The certificate files that the URL names are read for each connection, so an authority can be replaced without a restart.
	readCertificates := func(_ context.Context, c *pgx.ConnConfig) error {
		now, err := Parse(address)
		if err != nil {
			return err
		}
		c.TLSConfig, c.Fallbacks = now.TLSConfig, now.Fallbacks
		return nil
	}
	pool := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(readCertificates), stdlib.OptionAfterConnect(configure))
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(idle)
	pool.SetConnMaxIdleTime(idleTime)
	pool.SetConnMaxLifetime(old)
	return pool, nil
}

// configure applies the settings that the URL does not have.
func configure(ctx context.Context, conn *pgx.Conn) error {
	made := conn.Config().RuntimeParams
	var calls []string
	var arguments []any
	for name, value := range settings {
		if _, has := made[name]; !has {
			calls = append(calls, fmt.Sprintf("set_config($%d, $%d, false)", len(arguments)+1, len(arguments)+2))
			arguments = append(arguments, name, value)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	_, err := conn.Exec(ctx, "SELECT "+strings.Join(calls, ", "), arguments...)
	return err
}

// Parse parses a URL. Unless the URL has an sslmode, the server must have a valid certificate for its name. Its errors do not repeat the URL, which
// may have a password.
func Parse(address string) (*pgx.ConnConfig, error) {
	const form = "it may be such as postgres://kubeop@db.example.com/kubeop?sslmode=verify-full, and is not repeated here, because it may have a password"
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, errors.New("DATABASE_URL is no URL of a PostgreSQL database; " + form)
	}
	// An unescaped slash in a password would end the host, and the rest of the password would become the name of the database, which errors of pgx
	// repeat.
	_, rest, _ := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 && strings.Contains(rest[end:], "@") {
		return nil, errors.New("DATABASE_URL has an @ after its host; in a password /, ? and # have to be %2F, %3F and %23, and @ is %40 everywhere; " + form)
	}
	parsed.RawQuery = withMode(parsed.RawQuery)
	config, err := pgx.ParseConfig(parsed.String())
	if err != nil {
		return nil, errors.New("DATABASE_URL, or a variable of PostgreSQL such as PGSSLROOTCERT, is not valid; " + form)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	own := maps.Clone(startup)
	maps.Copy(own, config.RuntimeParams)
	config.RuntimeParams = own
	return config, nil
}

// withMode appends the sslmode to a query: its own, or verify-full if it has none, because pgx would otherwise accept a connection without TLS, or to
// any server. pgx uses the last of several, and also accepts ssl=true for an sslmode that verifies nothing. The rest of the query stays as written,
// because pgx does not read + as a space. Sockets have no TLS in any mode.
func withMode(query string) string {
	mode := "verify-full"
	// A part that cannot be parsed is no sslmode.
	values, _ := url.ParseQuery(query)
	for _, named := range values["sslmode"] {
		mode = cmp.Or(named, mode)
	}
	if query != "" {
		query += "&"
	}
	return query + "sslmode=" + url.QueryEscape(mode)
}
