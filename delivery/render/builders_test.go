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
	others := occupy(t, &b, "two", maxBuilds-maxTenantBuilds)
	if err := b.Do(t.Context(), "three", 0, nothing); !errors.Is(err, ErrBusy) {
		t.Errorf("a fifth build: %v", err)
	}
	waits := make(chan error)
	go func() { waits <- b.Do(context.Background(), "three", time.Hour, nothing) }()
	others()
	if err := <-waits; err != nil {
		t.Errorf("its turn came: %v", err)
	}
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
	close(release)
}

func TestABuildThatPanics(t *testing.T) {
	var b Builders
	err := b.Do(t.Context(), "one", time.Hour, func() error { panic("hunter22") })
	if err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("got %v", err)
	}
}
