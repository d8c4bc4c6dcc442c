package database

import (
	"context"
	"database/sql"
	"hash/fnv"
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
	// Again reports whether a transaction that failed may succeed if it runs again: the database ended it for the sake of another.
	Again func(error) bool
	// Locks are the statements that take locks by two numbers.
	Locks Locks
	// Schema knows the tables.
	Schema Schema
}

// Locks are statements with two numbers as their arguments, a kind and a name. Without them no lock is needed: one program uses the database, and all transactions that write follow each other.
type Locks struct {
	// Transaction waits for a lock that ends with the transaction.
	Transaction string
	// Try takes a lock that ends with the connection, and returns whether it got it. Release ends it before.
	Try, Release string
	// Watch has the database end a connection that is silent for longer than LosingAfter.
	Watch string
	// Patient has a transaction not be ended because one of its statements takes long.
	Patient string
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

// The kinds of locks.
const (
	lockOn = 0x6b756201 + iota
	lockOrder
	lockLead
)

// numberOf returns the number of a lock. Two names with one number wait for each other in vain, and nothing else.
func numberOf(name string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // It cannot fail.
	return int32(h.Sum32())
}

// say returns a statement in the dialect. A statement has no question mark but for placeholders.
func (d *Dialect) say(statement string) string {
	if !d.Numbered {
		return statement
	}
	var said strings.Builder
	next := 1
	for i := 0; i < len(statement); i++ {
		if statement[i] != '?' {
			said.WriteByte(statement[i])
			continue
		}
		said.WriteByte('$')
		if i+1 < len(statement) && statement[i+1] >= '1' && statement[i+1] <= '9' {
			continue // It has its number.
		}
		said.WriteString(strconv.Itoa(next))
		next++
	}
	return said.String()
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
