package kms

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// line returns the line of a new key.
func line(t *testing.T, id string) string {
	t.Helper()
	text, err := NewKey(id)
	if err != nil {
		t.Fatal(err)
	}
	return text + "\n"
}

// read reads a file with lines.
func read(t *testing.T, lines ...string) *Keys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var (
	place  = Place{Table: "signing-key", ID: "a"}
	record = []byte("a private key")
)

func TestARecordIsReadAtItsPlaceByItsKeyOnly(t *testing.T) {
	old := line(t, "old")
	keys := read(t, old)
	sealed, err := keys.Seal(place, record)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, "# the newest first\n", line(t, "new"), "\n", old).Open(place, sealed); err != nil || !bytes.Equal(got, record) {
		t.Fatalf("at its place: %q, %v", got, err)
	}
	if bytes.Contains(sealed.Data, record) {
		t.Error("the record is not encrypted")
	}
	changed := bytes.Clone(sealed.Data)
	changed[len(changed)-1]++
	other, err := keys.Seal(Place{"signing-key", "b"}, record)
	if err != nil {
		t.Fatal(err)
	}
	// The data key of one record with the text of another.
	mixed := append(bytes.Clone(other.Data[:len(other.Data)-len(record)-28]), sealed.Data[len(sealed.Data)-len(record)-28:]...)
	for name, c := range map[string]struct {
		keys   *Keys
		at     Place
		sealed Sealed
	}{
		"in another row":              {keys, Place{"signing-key", "b"}, sealed},
		"in another table":            {keys, Place{"webhook", "a"}, sealed},
		"where the names are shifted": {keys, Place{"signing-ke", "ya"}, sealed},
		"with quotes in the name":     {keys, Place{`signing-key" "a`, ""}, sealed},
		"changed":                     {keys, place, Sealed{"old", changed}},
		"cut off":                     {keys, place, Sealed{"old", sealed.Data[:20]}},
		"empty":                       {keys, place, Sealed{"old", nil}},
		"with another data key":       {keys, place, Sealed{"old", mixed}},
		"by another key of its id":    {read(t, line(t, "old")), place, sealed},
		"by another id":               {read(t, line(t, "new"), old), place, Sealed{"new", sealed.Data}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := c.keys.Open(c.at, c.sealed); err == nil {
				t.Errorf("it is read: %q", got)
			} else if strings.Contains(err.Error(), string(record)) {
				t.Errorf("the error reveals the record: %v", err)
			}
		})
	}
	if _, err := read(t, line(t, "new")).Open(place, sealed); !errors.Is(err, ErrNoKey) {
		t.Errorf("without its key: %v", err)
	}
}

func TestEachRecordHasADataKeyOfItsOwn(t *testing.T) {
	keys := read(t, line(t, "k"))
	first, err := keys.Seal(place, record)
	if err != nil {
		t.Fatal(err)
	}
	second, err := keys.Seal(place, record)
	if err != nil {
		t.Fatal(err)
	}
	// The length of the data key, and then the key.
	if bytes.Equal(first.Data[4:60], second.Data[4:60]) {
		t.Error("two records have one data key")
	}
}

func TestARewrapIsByTheFirstKeyAndKeepsTheRecord(t *testing.T) {
	old := line(t, "old")
	before, err := read(t, old).Seal(place, record)
	if err != nil {
		t.Fatal(err)
	}
	newer := line(t, "new")
	after, err := read(t, newer, old).Rewrap(place, before)
	if err != nil || after.Key != "new" {
		t.Fatalf("%s, %v", after.Key, err)
	}
	if got, err := read(t, newer).Open(place, after); err != nil || !bytes.Equal(got, record) {
		t.Errorf("without the old key: %q, %v", got, err)
	}
	again, err := read(t, newer).Rewrap(place, after)
	if err != nil || !bytes.Equal(again.Data, after.Data) {
		t.Errorf("what is rewrapped is written again: %v", err)
	}
	if _, err := read(t, newer, old).Rewrap(Place{"signing-key", "b"}, before); err == nil {
		t.Error("the record of another row is rewrapped")
	}
}

func TestAWrongFileIsNamedAndNotShown(t *testing.T) {
	good := line(t, "a")
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"", "it has no key"},
		"only a comment": {"# keys\n\n", "it has no key"},
		"no id":          {"hunter2hunter2\n", "line 1 is not an id"},
		"a short key":    {"a aHVudGVyMg==\n", "line 1 is not an id"},
		"no base64":      {good + "b hunter2!\n", "line 2 is not an id"},
		"a strange id":   {"a/b " + strings.TrimPrefix(good, "a ") + "\n", "line 1 is not an id"},
		"an id twice":    {good + line(t, "a"), "line 2 has the id of a line before"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg")) {
				t.Errorf("it shows the key: %v", err)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "manager key") {
		t.Errorf("no file: %v", err)
	}
	if _, err := NewKey("a b"); err == nil {
		t.Error("an id with a space is taken")
	}
}
