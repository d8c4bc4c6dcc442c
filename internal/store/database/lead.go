package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

const (
	// renewEvery is how often who leads asks the database whether it still does, and renewWithin how long it waits for the answer.
	renewEvery  = 3 * time.Second
	renewWithin = 4 * time.Second
	// LosingAfter is how long the database waits for the next question before another one may lead. It is longer than it takes who leads to notice, renewEvery and renewWithin.
	LosingAfter = 15 * time.Second
)

// Lead runs do unless another one has the lead of this name, and reports whether it did. The context of do ends when the lead is lost, because the database does not answer. One that
// is killed loses it at once, and one that hangs after LosingAfter.
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
		// What is wrong with the connection is known then.
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

// lead is a lock that ends with its connection.
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

// renew asks the database again and again, until the context ends. It ends the context if the database does not answer.
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

// release gives the lead to others at once, also if the context ended.
func (l *lead) release() {
	ctx, cancel := context.WithTimeout(context.Background(), renewWithin)
	defer cancel()
	// If it fails, the end of the connection does the same.
	_, _ = l.conn.ExecContext(ctx, l.dialect.withPlaceholders(l.dialect.Locks.Release), l.lock)
	l.discard()
}

// discard closes the connection instead of giving it back.
func (l *lead) discard() {
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
}
