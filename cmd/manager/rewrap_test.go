package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
	"github.com/kubeop/kubeop/internal/store/sqlstore"
)

// sealedStore is a store with secrets, and the folder with its file and the file of keys.
type sealedStore struct {
	*testing.T
	*sqlstore.Store
	dir string
}

func newSealedStore(t *testing.T) *sealedStore {
	t.Helper()
	s := &sealedStore{T: t, dir: t.TempDir()}
	var err error
	if s.Store, err = sqlite.Open(t.Context(), filepath.Join(s.dir, "manager.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("DATA_DIR", s.dir)
	t.Setenv("KEY_FILE", filepath.Join(s.dir, "keys"))
	return s
}

// key returns a line of `manager key`.
func (s *sealedStore) key(id string) string {
	s.Helper()
	out, err := s.run("key", id)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

func (s *sealedStore) run(arguments ...string) (string, error) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs(arguments)
	err := cmd.ExecuteContext(s.Context())
	return out.String(), err
}

// keys writes the file of keys, and reads it.
func (s *sealedStore) keys(lines ...string) *kms.Keys {
	s.Helper()
	path := filepath.Join(s.dir, "keys")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		s.Fatal(err)
	}
	k, err := kms.Read(path)
	if err != nil {
		s.Fatal(err)
	}
	return k
}

// add stores the secret of a number.
func (s *sealedStore) add(keys *kms.Keys, number int) {
	s.Helper()
	s.addAs(keys, fmt.Sprintf("id-%03d", number), number)
}

// addAs stores a secret that counts from later than those with smaller numbers.
func (s *sealedStore) addAs(keys *kms.Keys, id string, number int) {
	s.Helper()
	sealed, err := keys.Seal(kms.Place{Table: store.KindSigningKey, ID: id}, []byte("secret of "+id))
	if err != nil {
		s.Fatal(err)
	}
	from := time.Unix(int64(number+1), 0)
	private := store.Sealed{Kind: store.KindSigningKey, ID: id, Key: sealed.Key, Data: sealed.Data}
	if added, err := s.AddSigningKey(s.Context(), store.SigningKey{Private: private, From: from, Until: from.Add(time.Second)}); err != nil || !added {
		s.Fatal(added, err)
	}
}

// read returns how many secrets are of a key, and fails for those that keys do not read.
func (s *sealedStore) read(keys *kms.Keys, of string) (count int) {
	s.Helper()
	all, err := s.ListSealed(s.Context(), store.Sealed{}, 1000)
	if err != nil {
		s.Fatal(err)
	}
	for _, one := range all {
		record, err := keys.Open(kms.Place{Table: one.Kind, ID: one.ID}, kms.Sealed{Key: one.Key, Data: one.Data})
		if err != nil || string(record) != "secret of "+one.ID {
			s.Errorf("%s is %q, %v", one.ID, record, err)
		}
		if one.Key == of {
			count++
		}
	}
	return count
}

func TestRewrapReplacesTheKeyOfEachSecret(t *testing.T) {
	s := newSealedStore(t)
	older, newer := s.key("old"), s.key("new")
	const secrets = rewrapPage + 3
	for i := range secrets {
		s.add(s.keys(older), i)
	}
	s.keys(newer, older)
	for _, want := range []string{"103 of 103 secrets were encrypted anew. All are encrypted by the key new.\n", "0 of 103 secrets were encrypted anew. All are encrypted by the key new.\n"} {
		if out, err := s.run("rewrap"); err != nil || out != want {
			t.Fatalf("%q, %v, want %q", out, err, want)
		}
	}
	if got := s.read(s.keys(newer), "new"); got != secrets {
		t.Errorf("%d are of the new key", got)
	}
}

// interrupted ends the context after so many replacements.
type interrupted struct {
	store.Secrets
	left int
	end  context.CancelFunc
}

// ReplaceSealed implements store.Secrets.
func (i *interrupted) ReplaceSealed(ctx context.Context, was, is store.Sealed) (bool, error) {
	replaced, err := i.Secrets.ReplaceSealed(ctx, was, is)
	if i.left--; i.left == 0 {
		i.end()
	}
	return replaced, err
}

// writing lets a manager with an older file of keys write a secret when another one was replaced.
type writing struct {
	store.Secrets
	once func()
}

// ReplaceSealed implements store.Secrets.
func (w *writing) ReplaceSealed(ctx context.Context, was, is store.Sealed) (bool, error) {
	replaced, err := w.Secrets.ReplaceSealed(ctx, was, is)
	w.once()
	return replaced, err
}

// TestSecretsWrittenDuringARewrapAreRewrapped, also before the place where rewrap is: otherwise the older key would be thrown away with a secret that needs it.
func TestSecretsWrittenDuringARewrapAreRewrapped(t *testing.T) {
	s := newSealedStore(t)
	older, newer := s.key("old"), s.key("new")
	old := s.keys(older)
	for i := range 3 {
		s.add(old, i+1)
	}
	keys, written := s.keys(newer, older), false
	made, all, err := rewrapAll(t.Context(), &writing{s, func() {
		if !written {
			written = true
			s.addAs(old, "id-000", 4)
		}
	}}, keys)
	if err != nil || made != 4 || all != 4 || s.read(s.keys(newer), "new") != 4 {
		t.Errorf("%d of %d, %v", made, all, err)
	}
	number := 100
	again := func() {
		number++
		s.addAs(old, fmt.Sprintf("id-%03d", 999-number), number)
	}
	again()
	if _, _, err := rewrapAll(t.Context(), &writing{s, again}, keys); err == nil || !strings.Contains(err.Error(), "KEY_FILE") {
		t.Errorf("secrets keep being written, and it says %v", err)
	}
}

func TestAnInterruptedRewrapLosesNothingAndGoesOn(t *testing.T) {
	s := newSealedStore(t)
	older, newer := s.key("old"), s.key("new")
	for i := range 10 {
		s.add(s.keys(older), i)
	}
	keys := s.keys(newer, older)
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := rewrapAll(ctx, &interrupted{s, 4, cancel}, keys); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got := s.read(keys, "new"); got != 4 {
		t.Errorf("%d are of the new key", got)
	}
	if made, all, err := rewrapAll(t.Context(), s, keys); err != nil || made != 6 || all != 10 {
		t.Errorf("%d of %d, %v", made, all, err)
	}
	if got := s.read(s.keys(newer), "new"); got != 10 {
		t.Errorf("%d are of the new key", got)
	}
}

// TestASecretThatCannotBeReadIsNamed swaps two rows, and takes a key away.
func TestASecretThatCannotBeReadIsNamed(t *testing.T) {
	s := newSealedStore(t)
	older, newer := s.key("old"), s.key("new")
	for i := range 3 {
		s.add(s.keys(older), i)
	}
	all, err := s.ListSealed(t.Context(), store.Sealed{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	swapped := all[0]
	swapped.Data = all[1].Data
	if replaced, err := s.ReplaceSealed(t.Context(), all[0], swapped); err != nil || !replaced {
		t.Fatal(replaced, err)
	}
	s.keys(newer, older)
	if _, err := s.run("rewrap"); err == nil || !strings.Contains(err.Error(), "id-000") || strings.Contains(err.Error(), "id-001") || !strings.Contains(err.Error(), "2 were encrypted anew") {
		t.Errorf("a row that was swapped: %v", err)
	}
	s.keys(s.key("newest"))
	if _, err := s.run("rewrap"); !errors.Is(err, kms.ErrNoKey) || !strings.Contains(err.Error(), "0 were encrypted anew") {
		t.Errorf("without the key: %v", err)
	}
	if got, err := s.ListSealed(t.Context(), store.Sealed{}, 3); err != nil || got[1].Key != "new" {
		t.Errorf("what cannot be read was written: %+v, %v", got, err)
	}
	t.Setenv("KEY_FILE", "")
	if _, err := s.run("rewrap"); err == nil || !strings.Contains(err.Error(), "KEY_FILE") {
		t.Errorf("without a file: %v", err)
	}
}

func TestRevokingJWTsDeletesTheKeysThatSign(t *testing.T) {
	s := newSealedStore(t)
	s.add(s.keys(s.key("k")), 0)
	if _, err := s.run("revoke-jwts"); err != nil {
		t.Fatal(err)
	}
	if left, err := s.ListSigningKeys(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
