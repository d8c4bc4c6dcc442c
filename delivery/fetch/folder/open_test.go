package folder

import (
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/fstest"
)

// TestOpenFollowsNothing: Open refuses a link as ReadFile does, and gives files and folders.
func TestOpenFollowsNothing(t *testing.T) {
	root := FromFS(fstest.MapFS{
		"web/app.yaml": {Data: []byte("kind: App\n"), Mode: 0o644}, "web/link": {Data: []byte("app.yaml"), Mode: fs.ModeSymlink | 0o777},
	}).Folder(".")
	for name, want := range map[string]error{"web/link": ErrSymlink, "web/none": ErrNotExist, "web/../web": fs.ErrInvalid} {
		file, err := root.Open(name)
		var at *fs.PathError
		if file != nil || !errors.Is(err, want) || !errors.As(err, &at) || at.Op != "open" || at.Path != name {
			t.Errorf("%s: %v, %v", name, file, err)
		}
	}
	file, err := root.Open("web/app.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(file); err != nil || string(text) != "kind: App\n" {
		t.Errorf("it has %q, %v", text, err)
	}
	folder, err := root.Open("web")
	if err != nil {
		t.Fatal(err)
	}
	if about, err := folder.Stat(); err != nil || !about.IsDir() || about.Name() != "web" {
		t.Errorf("the folder is %v, %v", about, err)
	}
}

// TestAnErrorNamesOnePath: the one that it was about first.
func TestAnErrorNamesOnePath(t *testing.T) {
	broken := errors.New("broken")
	if got := PathError("open", "a", broken); got.Error() != "open a: broken" || !errors.Is(got, broken) {
		t.Errorf("got %v", got)
	}
	if got := PathError("open", "a", PathError("stat", "b", broken)); got.Error() != "stat b: broken" {
		t.Errorf("got %v", got)
	}
}
