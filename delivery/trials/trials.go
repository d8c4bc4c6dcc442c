// Package trials remembers inputs of tenants that cannot be evaluated, so that they are not tried again before they change: inputs that
// exceeded a limit, and inputs during whose evaluation the operator ended repeatedly.
package trials

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxLost is how often the operator may end during the evaluation of an input. One restart does not mean that the input caused it, several
// do.
const MaxLost = 3

// Refused says why an input is not evaluated again before it changes.
type Refused struct{ Why string }

func (e *Refused) Error() string { return e.Why }

// Trials record in files, one for each name, which input is being evaluated and which one exceeded a limit. The first line of a file is the
// input. The rest is how often its evaluation began without an end, or why it is not evaluated again. Files contain no secrets, because an
// input is a digest.
type Trials struct {
	// dir is the folder. If it is lost, inputs are tried again. "" records nothing.
	dir string
	// what describes what is evaluated, for messages.
	what string
}

// New returns the Trials in a folder, which need not exist; "" records nothing. what describes what is evaluated, such as "this chart with
// these values".
func New(dir, what string) *Trials { return &Trials{dir: dir, what: what} }

// Check returns a *Refused if an input must not be evaluated, otherwise nil.
func (t *Trials) Check(name types.NamespacedName, input string) error {
	_, err := t.lost(name, input)
	return err
}

// Begin records that the evaluation of an input begins, or fails like Check.
func (t *Trials) Begin(name types.NamespacedName, input string) error {
	lost, err := t.lost(name, input)
	if err != nil || t.dir == "" {
		return err
	}
	return t.write(name, input, strconv.Itoa(lost+1))
}

// lost returns how often the operator ended during the evaluation of an input, or a *Refused if it must not be evaluated.
func (t *Trials) lost(name types.NamespacedName, input string) (int, error) {
	if t.dir == "" {
		return 0, nil
	}
	of, lost, why, err := t.read(name)
	switch {
	case err != nil:
		return 0, err
	case of != input:
		return 0, nil
	case why != "":
		return 0, &Refused{why}
	case lost >= MaxLost:
		return 0, &Refused{fmt.Sprintf("the operator ended %d times while it evaluated %s; it is not tried again before they change", lost, t.what)}
	}
	return lost, nil
}

// End records the end of an evaluation. why says why the input must not be evaluated again; "" if it may.
func (t *Trials) End(name types.NamespacedName, input, why string) error {
	if t.dir == "" {
		return nil
	}
	if why != "" {
		return t.write(name, input, strings.ReplaceAll(why, "\n", "; "))
	}
	if err := os.Remove(t.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of an evaluation: %w", err)
	}
	return nil
}

// Last returns the recorded input of a name; "" for none.
func (t *Trials) Last(name types.NamespacedName) (string, error) {
	if t.dir == "" {
		return "", nil
	}
	input, _, _, err := t.read(name)
	return input, err
}

// Forget removes the records of a namespace.
func (t *Trials) Forget(namespace string) error {
	if t.dir == "" || namespace == "" {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(t.dir, fileName(namespace))); err != nil {
		return fmt.Errorf("removing the records of evaluations in %s: %w", namespace, err)
	}
	return nil
}

func (t *Trials) file(name types.NamespacedName) string {
	return filepath.Join(t.dir, fileName(name.Namespace), fileName(name.Name))
}

// fileName returns a valid file name.
func fileName(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

func (t *Trials) read(name types.NamespacedName) (input string, lost int, why string, err error) {
	text, err := os.ReadFile(t.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, "", nil
	}
	if err != nil {
		return "", 0, "", fmt.Errorf("reading what was evaluated before: %w", err)
	}
	input, rest, _ := strings.Cut(string(text), "\n")
	if lost, err := strconv.Atoi(rest); err == nil {
		return input, lost, "", nil
	}
	return input, 0, rest, nil
}

func (t *Trials) write(name types.NamespacedName, input, what string) error {
	file := t.file(name)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(input+"\n"+what), 0o600)
	}
	if err != nil {
		return fmt.Errorf("noting what is evaluated: %w", err)
	}
	return nil
}
