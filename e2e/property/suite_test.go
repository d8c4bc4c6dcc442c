//go:build e2e

// Package property runs random histories of user actions, including mistakes, against the operator's binary on a control plane without
// nodes. Two rules must always hold. No claim is deleted that no confirmation listed. After the last push, with everything confirmed, the
// cluster equals Git.
//
//	PROPERTY_HISTORIES  number of histories; default 500
//	PROPERTY_SEED       seed of the first history, incremented for each other one; default: from the clock, and printed
package property

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// lanes is the number of tenants that run histories in parallel.
const lanes = 20

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // The client's.
	os.Exit(m.Run())
}

// TestNoClaimIsDeletedWithoutConfirmation runs the histories. A failed history is shrunk to the shortest one that still fails.
func TestNoClaimIsDeletedWithoutConfirmation(t *testing.T) {
	count, seed := setting(t, "PROPERTY_HISTORIES", 500), setting(t, "PROPERTY_SEED", int(time.Now().Unix()))
	t.Logf("%d histories from PROPERTY_SEED=%d on", count, seed)
	w := newWorld(t)
	var next, acts atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for lane := range min(lanes, count) {
		running.Go(func() {
			k, err := w.newTenant(t.Context(), fmt.Sprintf("lane%d", lane))
			if err != nil {
				t.Error(err)
				return
			}
			for n := int(next.Add(1)) - 1; n < count && !t.Failed(); n = int(next.Add(1)) - 1 {
				h := newHistory(uint64(seed+n), n)
				acts.Add(int64(len(h.acts)))
				if err := k.play(t.Context(), h); err != nil {
					t.Errorf("history %d, PROPERTY_SEED=%d PROPERTY_HISTORIES=1: %v\n  %s", n, seed+n, err, strings.Join(h.words(), "\n  "))
					t.Logf("history %d made shorter: %s", n, w.shrink(t.Context(), h))
					return
				}
			}
		})
	}
	running.Wait()
	t.Logf("%d histories, %d acts, %d restarts of the operator, %d claims deleted, all of them confirmed, in %.0f s",
		min(int(next.Load()), count), acts.Load(), w.restarts.Load(), w.claims.deleted(), time.Since(began).Seconds())
}

func setting(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q, which is no number", name, text)
	}
	return n
}

// shrink runs parts of a failed history, each with a new tenant, and returns the shortest that still fails.
func (w *world) shrink(ctx context.Context, h history) string {
	w.shrinking.Lock()
	defer w.shrinking.Unlock()
	const tries = 8
	why := "it does not go wrong a second time, alone"
	for try := range tries {
		shorter := h
		if try > 0 {
			if len(h.acts) < 2 {
				break
			}
			cut := (try - 1) % len(h.acts)
			shorter.acts = append(append([]act{}, h.acts[:cut]...), h.acts[cut+1:]...)
		}
		k, err := w.newTenant(ctx, fmt.Sprintf("shrink%d", w.shrunk.Add(1)))
		if err != nil {
			return err.Error()
		}
		if err := k.play(ctx, shorter); err != nil {
			h, why = shorter, err.Error()
		} else if try == 0 {
			break
		}
	}
	return "the shortest that was found:\n  " + strings.Join(h.words(), "\n  ") + "\n" + why
}

// random returns a random source with a seed.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
