package database

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// Dialect has the differences between the databases. Statements are written for SQLite.
type Dialect struct {
	// Name is for messages, such as SQLite.
	Name string
	// Numbered is true if placeholders are $1 and $2, instead of ? and ?2.
	Numbered bool
	// Types replaces the types of SQLite in a statement that creates a table; nil keeps them.
	Types *strings.Replacer
	// Isolation is the isolation level of a transaction that writes.
	Isolation sql.IsolationLevel
	// OneWriter is true if the database lets one transaction write at a time, and gives those that wait for it no order.
	OneWriter bool
	// Retryable reports whether the database aborted a transaction because of another one, so that it may succeed if it is tried again.
	Retryable func(error) bool
	// LockTimedOut reports whether a statement failed because of Timeouts.TableLock.
	LockTimedOut func(error) bool
	// Locks has the statements for advisory locks.
	Locks Locks
	// Timeouts has the statements that set timeouts.
	Timeouts Timeouts
	// Schema has the queries about tables.
	Schema Schema
}

// Locks has statements whose argument is the name of a lock. They are "" if no lock is needed, because one program uses the database and transactions
// that write run one after the other.
type Locks struct {
	// Transaction waits for a lock, and holds it until the transaction ends.
	Transaction string
	// Try tries to take a lock until the connection ends, and returns whether it succeeded. Release gives the lock back earlier.
	Try, Release string
}

// Timeouts has statements, which are "" if the database needs none.
type Timeouts struct {
	// LeaderSession makes the database close this connection if it is idle for longer than LosingAfter.
	LeaderSession string
	// None removes the timeouts of this transaction, for its statements and for the time between them.
	None string
	// TableLock makes a statement of this transaction fail if it waits long for the lock of a table: all later users of the table would wait behind
	// it.
	TableLock string
}

// Schema has the queries about the content of a database.
type Schema struct {
	// Columns is a query for all columns: the table, the column and its type, ordered by table and position.
	Columns string
	// Kinds maps the types that Columns returns to kinds of values.
	Kinds map[string]Kind
	// Last returns the greatest ID that each numbered table has assigned. SetLast sets it.
	Last    func(context.Context, *Tx) (map[string]int64, error)
	SetLast func(ctx context.Context, tx *Tx, table string, last int64) error
}

// Kind is the kind of the values of a column.
type Kind string

// The kinds of values.
const (
	Text    Kind = "text"
	Integer Kind = "integer"
	Bytes   Kind = "bytes"
	Real    Kind = "real"
)

// The kinds of locks. The name of a lock begins with its kind.
const (
	lockWrite = "write/"
	lockOrder = "order/"
	lockLead  = "lead/"
)

// withPlaceholders returns a statement with the placeholders of the dialect. Statements use question marks only as placeholders.
func (d *Dialect) withPlaceholders(statement string) string {
	if !d.Numbered {
		return statement
	}
	var written strings.Builder
	next := 1
	for i := 0; i < len(statement); i++ {
		if statement[i] != '?' {
			written.WriteByte(statement[i])
			continue
		}
		written.WriteByte('$')
		if i+1 < len(statement) && statement[i+1] >= '1' && statement[i+1] <= '9' {
			continue // It is numbered already.
		}
		written.WriteString(strconv.Itoa(next))
		next++
	}
	return written.String()
}

// clean returns arguments that both databases store and find in the same way. It replaces what text in PostgreSQL cannot contain, which callers may
// send as part of a name. It replaces empty bytes, which the driver of SQLite would store as NULL.
func clean(arguments []any) []any {
	cleaned := make([]any, len(arguments))
	for i, a := range arguments {
		switch v := a.(type) {
		case string:
			a = strings.ReplaceAll(strings.ToValidUTF8(v, "\uFFFD"), "\x00", "\uFFFD")
		case []byte:
			if len(v) == 0 {
				a = nil
			}
		}
		cleaned[i] = a
	}
	return cleaned
}
