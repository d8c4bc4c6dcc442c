package render

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// occupy has a tenant's builds run until the returned function is called, and waits until they have begun.
func occupy(t *testing.T, b *Builders, tenant string, n int) (end func()) {
	t.Helper()
	release, begun, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	for range n {
		go func() {
			ended <- b.Do(context.Background(), tenant, time.Hour, func() error {
				begun <- struct{}{}
				<-release
				return nil
			})
		}()
		<-begun
	}
	return func() {
		close(release)
		for range n {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}

func TestBuildersAreBounded(t *testing.T) {
	var b Builders
	nothing := func() error { return nil }
	end := occupy(t, &b, "one", maxTenantBuilds)
	err := b.Do(t.Context(), "one", 0, nothing)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "4 builds may run at once, 2 of a tenant") {
		t.Errorf("a third build of a tenant: %v", err)
	}
	if err := b.Do(t.Context(), "two", 0, nothing); err != nil {
		t.Errorf("another tenant's: %v", err)
	}
	others := occupy(t, &b, "two", 1)
	err = b.Do(t.Context(), "two", 0, nothing)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "the last place is for tenants of whom none runs") {
		t.Errorf("the last place, for a tenant of whom one runs: %v", err)
	}
	last := occupy(t, &b, "three", 1)
	if err := b.Do(t.Context(), "four", 0, nothing); !errors.Is(err, ErrBusy) {
		t.Errorf("a fifth build: %v", err)
	}
	waits := make(chan error)
	go func() { waits <- b.Do(context.Background(), "four", time.Hour, nothing) }()
	others()
	if err := <-waits; err != nil {
		t.Errorf("its turn came: %v", err)
	}
	last()
	end()
	if b.all != 0 || len(b.of) != 0 {
		t.Errorf("places are left taken: %d, %v", b.all, b.of)
	}
}

func TestABuildThatTakesTooLong(t *testing.T) {
	var b Builders
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	err := b.Do(ctx, "one", time.Hour, func() error {
		cancel()
		<-release
		return nil
	})
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "spec.timeout") {
		t.Errorf("got %v", err)
	}
	if b.all != 1 {
		t.Errorf("the place of a build that runs on is free: %d", b.all)
	}
	nothing := func() error { return nil }
	err = b.Do(t.Context(), "one", time.Hour, nothing)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "run on past their timeout: 1") {
		t.Errorf("another build of the tenant: %v", err)
	}
	if err := b.Do(t.Context(), "two", 0, nothing); err != nil {
		t.Errorf("another tenant's: %v", err)
	}
	close(release)
	for errors.Is(err, ErrBusy) && t.Context().Err() == nil {
		err = b.Do(t.Context(), "one", 0, nothing)
	}
	if err != nil || b.all != 0 || len(b.of) != 0 {
		t.Errorf("once it ended: %v, %d places are taken", err, b.all)
	}
}

// TestTwoTenantsCannotTakeAllPlaces has two begin all they can, and none of it ends.
func TestTwoTenantsCannotTakeAllPlaces(t *testing.T) {
	var b Builders
	release := make(chan struct{})
	defer close(release)
	begun := 0
	for range 3 {
		for _, tenant := range []string{"one", "two"} {
			ctx, cancel := context.WithCancel(t.Context())
			err := b.Do(ctx, tenant, 0, func() error {
				begun++
				cancel()
				<-release
				return nil
			})
			cancel()
			if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrBusy) {
				t.Error(err)
			}
		}
	}
	if begun != 2 {
		t.Errorf("%d builds began that do not end", begun)
	}
	if err := b.Do(t.Context(), "three", 0, func() error { return nil }); err != nil {
		t.Errorf("a third tenant: %v", err)
	}
}

func TestABuildThatPanics(t *testing.T) {
	var b Builders
	err := b.Do(t.Context(), "one", time.Hour, func() error { panic("hunter22") })
	if err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("got %v", err)
	}
}
