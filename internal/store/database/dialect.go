package database

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// Dialect is what differs between the kinds of databases. Statements are written as SQLite takes them.
type Dialect struct {
	// Name is for messages, such as SQLite.
	Name string
	// Numbered says that placeholders are $1 and $2, instead of ? and ?2.
	Numbered bool
	// Types says what stands in a statement that makes a table in place of SQLite's types; nil: the same.
	Types *strings.Replacer
	// Isolation is that of a transaction that writes.
	Isolation sql.IsolationLevel
	// Retryable reports whether a transaction that failed may succeed if it runs again: the database ended it for the sake of another.
	Retryable func(error) bool
	// LockTimedOut reports whether a statement failed because of the lock_timeout of Timeouts.TableLock.
	LockTimedOut func(error) bool
	// Locks are the statements that take advisory locks.
	Locks Locks
	// Timeouts are the statements that set timeouts.
	Timeouts Timeouts
	// Schema knows the tables.
	Schema Schema
}

// Locks are statements with the name of a lock as their argument. Without them no lock is needed: one program uses the database, and all transactions that write follow each other.
type Locks struct {
	// Transaction waits for a lock that ends with the transaction.
	Transaction string
	// Try takes a lock that ends with the connection, and returns whether it got it. Release ends it before.
	Try, Release string
}

// Timeouts are statements, "" where the database needs none.
type Timeouts struct {
	// LeaderSession makes the database end this connection once it is silent for longer than LosingAfter.
	LeaderSession string
	// None lets this transaction take as long as it likes, in a statement and between two of them.
	None string
	// TableLock makes a statement of this transaction fail if it waits long for a lock of a table: all who use the table later wait behind it.
	TableLock string
}

// Schema says what is in a database.
type Schema struct {
	// Columns is a query for all columns of all tables: the table, the column and its type, in the order of tables and of their columns.
	Columns string
	// Kinds are the kinds of values by the types that Columns returns.
	Kinds map[string]Kind
	// Last returns the greatest ID that each table gave out, of those that number their rows. SetLast sets it.
	Last    func(context.Context, *Tx) (map[string]int64, error)
	SetLast func(ctx context.Context, tx *Tx, table string, last int64) error
}

// Kind is what kind of values a column has.
type Kind string

// The kinds of values.
const (
	Text    Kind = "text"
	Integer Kind = "integer"
	Bytes   Kind = "bytes"
	Real    Kind = "real"
)

// The kinds of locks, with which their names begin.
const (
	lockWrite = "write/"
	lockOrder = "order/"
	lockLead  = "lead/"
)

// withPlaceholders returns a statement with the placeholders of the dialect. A statement has no question mark but for placeholders.
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
			continue // It has its number.
		}
		written.WriteString(strconv.Itoa(next))
		next++
	}
	return written.String()
}

// clean returns arguments as both kinds keep and find them: without what text in PostgreSQL cannot hold, and callers may send as part of a name; and without empty bytes, which the
// driver of SQLite takes for NULL.
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
