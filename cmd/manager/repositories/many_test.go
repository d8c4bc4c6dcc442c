package repositories

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestManyCallersLoseNothing: 200 of them write to one repository at the same time, half of them each of its requests twice with one key. Each is one commit.
func TestManyCallersLoseNothing(t *testing.T) {
	const all = 200
	s := newStage(t)
	admin := s.holder("root", "admin")
	var callers sync.WaitGroup
	took, failed := make([]time.Duration, all), make([]string, all)
	for i := range all {
		callers.Go(func() {
			begin := time.Now()
			for range 1 + i%2 {
				answer := s.send(admin, "POST", "/v1/apps/acme/shop", fmt.Sprintf(`{"name":"app-%d","spec":%s}`, i, strings.Replace(webSpec, "api.example.com", fmt.Sprintf("app-%d.example.com", i), 1)),
					header{"Idempotency-Key", fmt.Sprint("key-", i)})
				if answer.Code != http.StatusAccepted {
					failed[i] = answer.Body.String()
				}
			}
			took[i] = time.Since(begin)
		})
	}
	callers.Wait()
	for i, why := range failed {
		if why != "" {
			t.Errorf("%d: %s", i, why)
		}
	}
	if files := strings.Count(s.acme.bare("ls-tree", "-r", "--name-only", "main", "projects/shop/apps"), "app.yaml"); files != all+1 || s.acme.commits() != all+1 {
		t.Errorf("%d files in %d commits", files, s.acme.commits())
	}
	slices.Sort(took)
	t.Logf("%d callers: p50 %s, p99 %s", all, took[all/2].Round(time.Millisecond), took[all*99/100].Round(time.Millisecond))
}
