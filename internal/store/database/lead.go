package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

const (
	// renewEvery is how often the leader asks the database whether it still leads, and renewWithin how long it waits for the answer.
	renewEvery  = 3 * time.Second
	renewWithin = 4 * time.Second
	// LosingAfter is how long the database waits for the next query of a leader before another one may lead. It is longer than renewEvery and
	// renewWithin together, so the leader notices first.
	LosingAfter = 15 * time.Second
)

// Lead calls do unless another one has the lead of this name, and reports whether it called it. The context of do ends if the lead is lost because the
// database does not answer. A leader that is killed loses the lead at once, and one that hangs after LosingAfter.
func (db *DB) Lead(ctx context.Context, name string, do func(context.Context) error) (led bool, err error) {
	if _, has := db.leads.LoadOrStore(name, true); has {
		return false, nil
	}
	defer db.leads.Delete(name)
	if db.dialect.Locks.Try == "" {
		return true, do(ctx)
	}
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return false, fmt.Errorf("taking the lead: %w", err)
	}
	l := &lead{conn: conn, dialect: db.dialect, lock: lockLead + name}
	if led, err = l.take(ctx); err != nil || !led {
		// If the connection is broken, that is already reported.
		_ = conn.Close()
		return false, err
	}
	defer l.release()
	leading, lose := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		l.renew(leading, lose)
	}()
	err = do(leading)
	if ctx.Err() == nil && leading.Err() != nil {
		err = context.Cause(leading)
	}
	lose(nil)
	<-renewed
	return true, err
}

// lead is a lock that its connection holds.
type lead struct {
	conn    *sql.Conn
	dialect *Dialect
	lock    string
}

func (l *lead) take(ctx context.Context) (taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	if err := l.conn.QueryRowContext(ctx, l.dialect.withPlaceholders(l.dialect.Locks.Try), l.lock).Scan(&taken); err != nil {
		return false, fmt.Errorf("taking the lead: %w", err)
	}
	if !taken {
		return false, nil
	}
	if _, err := l.conn.ExecContext(ctx, l.dialect.Timeouts.LeaderSession); err != nil {
		l.discard()
		return false, fmt.Errorf("taking the lead: %w", err)
	}
	return true, nil
}

// renew checks regularly that the lead is held, until the context ends. It ends the context if the database does not answer.
func (l *lead) renew(ctx context.Context, lose context.CancelCauseFunc) {
	again := time.NewTicker(renewEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		asked, cancel := context.WithTimeout(ctx, renewWithin)
		err := l.conn.PingContext(asked)
		cancel()
		if err != nil {
			lose(fmt.Errorf("the lead is lost: %w", err))
			return
		}
	}
}

// release gives the lead up at once, even if the context ended.
func (l *lead) release() {
	ctx, cancel := context.WithTimeout(context.Background(), renewWithin)
	defer cancel()
	// If this fails, closing the connection releases the lock.
	_, _ = l.conn.ExecContext(ctx, l.dialect.withPlaceholders(l.dialect.Locks.Release), l.lock)
	l.discard()
}

// discard closes the connection instead of returning it to the pool.
func (l *lead) discard() {
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
}
