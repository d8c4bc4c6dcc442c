package sqlstore_test

import (
	"database/sql"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

// TestTheSweepRemovesWhatIsLeftOfWebhooks writes rows as a writer of PostgreSQL leaves them that meets a deletion: of a webhook, and of the message for which another one waits.
func TestTheSweepRemovesWhatIsLeftOfWebhooks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	if err := s.CreateWebhook(t.Context(), store.Webhook{ID: "a", Created: now, Secret: store.Sealed{Kind: store.KindWebhookSecret, ID: "a", Data: []byte("x")}}, store.Event{}); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, webhook := range []string{"a", "deleted"} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO webhook_deliveries (webhook, message, type, tenant, object, at, body, state, since, due) VALUES (?, 'm', 'app.failed', '', 'app/web', 0, x'', 'waiting', 0, ?)`, webhook, int64(math.MaxInt64))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sweep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if left, err := s.ListDeliveries(t.Context(), "deleted", "", 0, 10); err != nil || len(left) != 0 {
		t.Errorf("%v: of a webhook that was deleted are left %+v", err, left)
	}
	claimed, err := s.ClaimDeliveries(t.Context(), "a", store.Claim{By: "one", Now: now, Until: now.Add(time.Minute)}, 10)
	if err != nil || len(claimed) != 1 {
		t.Errorf("%v: of what waited for a message that is gone are due %+v", err, claimed)
	}
}
