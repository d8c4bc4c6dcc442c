package page

import (
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// numbers returns the numbers from 1 to 5 after a key, as a store does.
func numbers(after string, most int) (found []int, err error) {
	last := 0
	if after != "" {
		if last, err = strconv.Atoi(after); err != nil {
			return nil, err
		}
	}
	for n := last + 1; n <= 5 && len(found) < most; n++ {
		found = append(found, n)
	}
	return found, nil
}

func same(text string) string { return text }

func TestTheCursorsOfPagesLeadThroughAllItems(t *testing.T) {
	for limit, want := range map[int][][]string{
		1: {{"1"}, {"2"}, {"3"}, {"4"}, {"5"}}, 2: {{"1", "2"}, {"3", "4"}, {"5"}}, 4: {{"1", "2", "3", "4"}, {"5"}}, 5: {{"1", "2", "3", "4", "5"}}, 9: {{"1", "2", "3", "4", "5"}},
	} {
		var got [][]string
		q := Query{Limit: limit}
		for range len(want) + 1 {
			list, err := Read(t.Context(), q, numbers, strconv.Itoa, same)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, list.Items)
			if q.Cursor = list.Next; q.Cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestAListWithoutItemsIsNotNull(t *testing.T) {
	list, err := Read(t.Context(), Query{Limit: 1}, func(string, int) ([]int, error) { return nil, nil }, strconv.Itoa, same)
	if err != nil || list.Items == nil || len(list.Items) != 0 || list.Next != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestReadSaysWhyThereIsNoPage(t *testing.T) {
	for name, tc := range map[string]struct {
		cursor string
		failed error
		want   problem.Code
	}{
		"what is no cursor":       {"?", nil, problem.BadRequest},
		"the store is away":       {"", errors.New("away"), problem.Unavailable},
		"the tenant is not there": {"", store.ErrNotFound, problem.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(string, int) ([]int, error) { return nil, tc.failed }
			_, err := Read(t.Context(), Query{Limit: 1, Cursor: tc.cursor}, read, strconv.Itoa, same)
			var p *problem.Problem
			if !errors.As(err, &p) || p.Code != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}
