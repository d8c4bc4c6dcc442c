package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// maxLost is how often the operator may end while it evaluates an input. A restart says nothing about an input, several do.
const maxLost = 3

// trials remember in files, one for each release, which input is being evaluated and which one was over a limit. A file has the
// input on its first line; then how often it was begun without an end, or why it is not begun again.
type trials struct {
	// dir may be lost: then an input is tried again. "" remembers nothing.
	dir string
}

// begin notes that an input is about to be evaluated, or fails with an ErrRender why it is not to be.
func (t *trials) begin(release types.NamespacedName, input string) error {
	if t.dir == "" {
		return nil
	}
	lost, why, err := t.read(release, input)
	switch {
	case err != nil:
		return err
	case why != "":
		return renderError(errors.New(why))
	case lost >= maxLost:
		return renderError(fmt.Errorf("the operator ended %d times while it evaluated this chart with these values; it is not tried again before they change", lost))
	}
	return t.write(release, input, strconv.Itoa(lost+1))
}

// end notes how that ended: why is "" unless it is not to be begun again.
func (t *trials) end(release types.NamespacedName, input, why string) error {
	if t.dir == "" {
		return nil
	}
	if why != "" {
		return t.write(release, input, oneLine(why))
	}
	if err := os.Remove(t.file(release)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// forget drops what is remembered of a namespace.
func (t *trials) forget(namespace string) error {
	if t.dir == "" || namespace == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(t.dir, labelValue(namespace)))
}

func (t *trials) file(release types.NamespacedName) string {
	return filepath.Join(t.dir, labelValue(release.Namespace), labelValue(release.Name))
}

func (t *trials) read(release types.NamespacedName, input string) (lost int, why string, err error) {
	text, err := os.ReadFile(t.file(release))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("reading what was evaluated before: %w", err)
	}
	of, rest, _ := strings.Cut(string(text), "\n")
	if of != input {
		return 0, "", nil
	}
	if lost, err := strconv.Atoi(rest); err == nil {
		return lost, "", nil
	}
	return 0, rest, nil
}

func (t *trials) write(release types.NamespacedName, input, what string) error {
	file := t.file(release)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(input+"\n"+what), 0o600)
	}
	if err != nil {
		return fmt.Errorf("noting what is evaluated: %w", err)
	}
	return nil
}
