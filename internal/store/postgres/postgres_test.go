package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
	"github.com/kubeop/kubeop/internal/testenv/postgres"
	"github.com/kubeop/kubeop/internal/testenv/storetest"
)

func TestPostgreSQLPassesTheTestsOfEveryStore(t *testing.T) {
	server := postgres.Start(t)
	made := map[string]string{}
	storetest.Run(t, func(t *testing.T) store.Store {
		t.Helper()
		if made[t.Name()] == "" {
			made[t.Name()] = server.Database()
		}
		return open(t, made[t.Name()])
	})
}

func open(t *testing.T, url string) store.Store {
	t.Helper()
	s, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestErrorsNeverHaveThePassword tries URLs that are wrong in many ways, with a password in each.
func TestErrorsNeverHaveThePassword(t *testing.T) {
	server := postgres.Start(t)
	right := server.URL("missing")
	for name, c := range map[string]struct{ url, want string }{
		"a database that is not there": {right, `database "missing" does not exist`},
		"a wrong password":             {strings.Replace(right, url.UserPassword("", postgres.Password).String(), ":S3CR3T", 1), "password authentication failed"},
		"nobody listens":               {"postgres://kubeop:S3CR3T@127.0.0.1:1/kubeop", "connection refused"},
		"a port that is none":          {"postgres://kubeop:S3CR3T@db:port/kubeop", "is no URL of a PostgreSQL database"},
		"a password with a slash":      {"postgres://kubeop:S3CR3T/x@db/kubeop", "DATABASE_URL"},
		"one that begins with a slash": {"postgres://kubeop:/S3CR3T@db/kubeop", "has an @ after its host"},
		"with a slash after a number":  {"postgres://kubeop:123/S3CR3T@db/kubeop", "has an @ after its host"},
		"with a question mark":         {"postgres://kubeop:1?S3CR3T@db/kubeop", "has an @ after its host"},
		"with a hash":                  {"postgres://kubeop:1#S3CR3T@db/kubeop", "has an @ after its host"},
		"with an @":                    {"postgres://kubeop:a@S3CR3T@127.0.0.1:1/kubeop", "connection refused"},
		"another database":             {"mysql://kubeop:S3CR3T@db/kubeop", "is no URL of a PostgreSQL database"},
		"words":                        {"host=db password=S3CR3T", "is no URL of a PostgreSQL database"},
		"an unknown sslmode":           {"postgres://kubeop:S3CR3T@db/kubeop?sslmode=maybe", "is not valid"},
		"an authority that is missing": {"postgres://kubeop:S3CR3T@db/kubeop?sslrootcert=/missing", "is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), c.url)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "S3CR3T") || strings.Contains(err.Error(), postgres.Password) {
				t.Errorf("Open returned %v, want %s", err, c.want)
			}
		})
	}
}

func TestTheServerHasToHaveACertificateUnlessTheURLSaysOtherwise(t *testing.T) {
	for query, secure := range map[string]bool{
		"": true, "?connect_timeout=3": true, "?sslmode=verify-full": true, "?sslmode=disable": false, "?sslmode=require": false, "?sslmode=": true, "?ssl=true": true, "?ssl=false": true,
		"?sslmode=verify-full&ssl=true": true, "?sslmode=verify-full&sslmode=": true, "?sslmode=&connect_timeout=3": true,
	} {
		config, err := Parse("postgres://kubeop@db/kubeop" + query)
		if err != nil {
			t.Fatal(err)
		}
		if verified := config.TLSConfig != nil && !config.TLSConfig.InsecureSkipVerify && config.TLSConfig.ServerName == "db" && len(config.Fallbacks) == 0; verified != secure {
			t.Errorf("%q: %+v", query, config.TLSConfig)
		}
	}
}

func TestTheQueryOfAURLStaysAsItIs(t *testing.T) {
	config, err := Parse("postgres://kubeop@db/kubeop?options=-c%20search_path%3Dkubeop&password=a%20b%2B%26")
	if err != nil {
		t.Fatal(err)
	}
	if options := config.RuntimeParams["options"]; options != "-c search_path=kubeop" || config.Password != "a b+&" {
		t.Errorf("the options are %q, and the password %q", options, config.Password)
	}
}

// TestAStoreComesBackWithItsServer stops the server while others write, and starts it again: what was confirmed is there, and nothing is half there.
func TestAStoreComesBackWithItsServer(t *testing.T) {
	server := postgres.Start(t, "fsync = on")
	s := open(t, server.Database())
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	confirmed := make([]map[string]bool, 4)
	var writers sync.WaitGroup
	for i := range confirmed {
		confirmed[i] = map[string]bool{}
		writers.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				id := fmt.Sprintf("%d-%d", i, j)
				if err := s.CreateToken(t.Context(), store.Token{ID: id, Hash: []byte(id)}, store.Event{Object: id}); err == nil {
					confirmed[i][id] = true
				} else {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	for i := range 4 {
		time.Sleep(300 * time.Millisecond)
		if i%2 == 0 {
			server.Stop()
		} else {
			server.Kill()
		}
		began := time.Now()
		if err := s.Ping(t.Context()); err == nil || time.Since(began) > 5*time.Second {
			t.Errorf("without the server Ping returned %v after %s", err, time.Since(began))
		}
		server.Start()
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("with the server again: %v", err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	stop()
	writers.Wait()
	tokens, err := s.ListTokens(t.Context(), "", "", 1_000_000)
	events, also := s.ListEvents(t.Context(), "", 0, 1_000_000)
	if err != nil || also != nil || len(tokens) != len(events) {
		t.Fatalf("%v %v: there are %d tokens and %d events", err, also, len(tokens), len(events))
	}
	there := map[string]bool{}
	for _, token := range tokens {
		there[token.ID] = true
	}
	for i := range confirmed {
		if len(confirmed[i]) == 0 {
			t.Error("nothing was written")
		}
		for id := range confirmed[i] {
			if !there[id] {
				t.Errorf("%s was confirmed, and is lost", id)
			}
		}
	}
}

// TestTheLeadIsOfOneManager is about two managers on one database.
func TestTheLeadIsOfOneManager(t *testing.T) {
	server := postgres.Start(t)
	url := server.Database()
	a, b := open(t, url), open(t, url)
	defer a.Close()
	defer b.Close()
	idle := func(context.Context) error { return nil }
	led, err := a.Lead(t.Context(), "work", func(ctx context.Context) error {
		if led, err := b.Lead(ctx, "work", idle); led || err != nil {
			t.Errorf("both lead: %v", err)
		}
		return nil
	})
	if !led || err != nil {
		t.Errorf("%t, %v", led, err)
	}
	if led, err := b.Lead(t.Context(), "work", idle); !led || err != nil {
		t.Errorf("when the first one is done: %t, %v", led, err)
	}
	// The database ends the connection of who leads.
	began := time.Now()
	led, err = a.Lead(t.Context(), "work", func(ctx context.Context) error {
		server.Exec("postgres", `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'`)
		if led, err := b.Lead(t.Context(), "work", idle); !led || err != nil {
			t.Errorf("another one takes the lead: %t, %v", led, err)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !led || err == nil || !strings.Contains(err.Error(), "the lead is lost") || time.Since(began) > database.LosingAfter {
		t.Errorf("the lead is lost: %t, %v after %s", led, err, time.Since(began))
	}
}

func TestADatabaseThatCannotKeepAllTextIsRefused(t *testing.T) {
	server := postgres.Start(t)
	server.Exec("postgres", `CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0`)
	if _, err := Open(t.Context(), server.URL("latin")); err == nil || !strings.Contains(err.Error(), "ENCODING 'UTF8'") {
		t.Errorf("Open returned %v", err)
	}
}

// TestAStatementThatWaitsForALockEnds: the other side of a lock may hang.
func TestAStatementThatWaitsForALockEnds(t *testing.T) {
	db, err := Connect(t.Context(), postgres.Start(t).Database())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Write(t.Context(), "a", func(ctx context.Context, _ *database.Tx) error {
		limited, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		return db.Write(limited, "a", func(context.Context, *database.Tx) error { return errors.New("both have the lock") })
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}
