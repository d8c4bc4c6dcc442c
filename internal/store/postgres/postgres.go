// Package postgres opens a store in PostgreSQL, for one manager or several. It uses pgx by its driver for database/sql, so that the statements are those of SQLite, and because
// database/sql bounds the connections and replaces those that broke.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
)

const (
	// connections is how many a manager has at once.
	connections = 16
	// idle is how many of them, and for how long, it keeps without use. old is when one is replaced, so that after a failover all lead to the new server.
	idle     = 8
	idleTime = 5 * time.Minute
	old      = 30 * time.Minute
	// connectTimeout is how long one address is tried.
	connectTimeout = 5 * time.Second
	// minVersion is the oldest PostgreSQL, in the form of server_version_num: 14 has idle_session_timeout.
	minVersion = 140000
)

// settings are those of a connection, unless the URL has others. Statements and locks are waited for, and silent transactions are kept, for less time than database waits for a
// transaction; the server notices by the last ones that the other side is gone.
var settings = map[string]string{
	"application_name": "kubeop-manager", "client_encoding": "UTF8", "statement_timeout": "15s", "idle_in_transaction_session_timeout": "30s",
	"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3",
}

// Open connects to the database at a URL, and migrates it. The database has to be there.
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

// Connect connects to the database at a URL as it is.
func Connect(ctx context.Context, address string) (*database.DB, error) {
	config, err := Parse(address)
	if err != nil {
		return nil, err
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(idle)
	pool.SetConnMaxIdleTime(idleTime)
	pool.SetConnMaxLifetime(old)
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

// Parse reads a URL. Unless it names an sslmode, the server has to have a valid certificate of its name. Its errors do not repeat it, because it may have a password.
func Parse(address string) (*pgx.ConnConfig, error) {
	const form = "it may be such as postgres://kubeop@db.example.com/kubeop?sslmode=verify-full, and is not repeated here, because it may have a password"
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, errors.New("DATABASE_URL is no URL of a PostgreSQL database; " + form)
	}
	if query := parsed.Query(); !query.Has("sslmode") && !query.Has("ssl") {
		// pgx would take a connection without TLS, or to anybody, for a good one. Sockets have no TLS in any mode.
		query.Set("sslmode", "verify-full")
		parsed.RawQuery = query.Encode()
	}
	config, err := pgx.ParseConfig(parsed.String())
	if err != nil {
		return nil, errors.New("DATABASE_URL, or a variable of PostgreSQL such as PGSSLROOTCERT, is not valid; " + form)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	own := maps.Clone(settings)
	maps.Copy(own, config.RuntimeParams)
	config.RuntimeParams = own
	return config, nil
}
