// Package page has lists in pages. A cursor is the key of the last item of a page, so the order stays the same while items are added and deleted.
package page

import (
	"context"
	"encoding/base64"

	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Query has the parameters of every list.
type Query struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"How many items to answer at most."`
	Cursor string `query:"cursor" maxLength:"512" doc:"The field next of the page before."`
}

// OfTenant has the parameters of lists of one tenant, or of all.
type OfTenant struct {
	Query
	Tenant string `query:"tenant" maxLength:"63" doc:"The tenant. Default: the only one of the caller; all, for administrators."`
}

// List is the answer of every list.
type List[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"The cursor of the next page. It is not there on the last page."`
}

// Key returns the key in the cursor, "" without a cursor.
func (q Query) Key() (string, error) {
	key, err := base64.RawURLEncoding.Strict().DecodeString(q.Cursor)
	if err != nil {
		return "", problem.New(problem.BadRequest, "The cursor is not one that this API answered.", problem.Fault{Location: "query.cursor", Message: "is no cursor"})
	}
	return string(key), nil
}

// Read returns the page that a query asks for. read returns at most that many items after a key, which is "" for the first page; show converts an item
// for the answer.
func Read[S, T any](ctx context.Context, q Query, read func(after string, most int) ([]S, error), show func(S) T, key func(T) string) (List[T], error) {
	after, err := q.Key()
	if err != nil {
		return List[T]{}, err
	}
	found, err := read(after, q.Limit+1)
	if err != nil {
		return List[T]{}, problem.FromStore(ctx, err)
	}
	all := make([]T, 0, len(found))
	for _, item := range found {
		all = append(all, show(item))
	}
	return Of(q, all, key), nil
}

// Of returns a page. read has one item more than the limit if there is a next page.
func Of[T any](q Query, read []T, key func(T) string) List[T] {
	if len(read) <= q.Limit {
		return List[T]{Items: append([]T{}, read...)}
	}
	return List[T]{Items: read[:q.Limit], Next: base64.RawURLEncoding.EncodeToString([]byte(key(read[q.Limit-1])))}
}
