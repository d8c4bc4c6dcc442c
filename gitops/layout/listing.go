package layout

import (
	"io/fs"
	"slices"
	"strings"
)

// Listing has the entries of a folder.
type Listing struct {
	// Entries are the files and folders. Unusable has the names of all other entries, with the reasons.
	Entries  []fs.DirEntry
	Unusable map[string]string
}

// List lists a folder. At the root it leaves out entries that do not concern kubeop.
func List(files fs.FS, dir string) (Listing, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Unusable: map[string]string{}}
	for _, e := range entries {
		switch why := Unusable(e); {
		case dir == "." && IgnoredAtRoot(e.Name()):
		case why != "":
			l.Unusable[e.Name()] = why
		default:
			l.Entries = append(l.Entries, e)
		}
	}
	return l, nil
}

// File returns the regular file of that name.
func (l Listing) File(name string) (fs.DirEntry, bool) {
	i := slices.IndexFunc(l.Entries, func(e fs.DirEntry) bool { return e.Name() == name && !e.IsDir() })
	if i < 0 {
		return nil, false
	}
	return l.Entries[i], true
}

// Folder reports whether there is a folder of that name.
func (l Listing) Folder(name string) bool {
	return slices.ContainsFunc(l.Entries, func(e fs.DirEntry) bool { return e.Name() == name && e.IsDir() })
}

// Nearest returns the regular file with the wanted name or, without one, a file with a similar name; "" for none.
func (l Listing) Nearest(want string) string {
	found := ""
	for _, e := range l.Entries {
		if e.IsDir() || !Nearly(e.Name(), want) {
			continue
		}
		if found == "" || e.Name() == want {
			found = e.Name()
		}
	}
	return found
}

// Definition reports whether an entry stands for an object that has a file of its own. A file with another extension, such as baseline.yml, does so unless
// baseline.yaml is there, too: it is not read, and its object stays as it was.
func (l Listing) Definition(e fs.DirEntry) bool {
	name := NameOf(e.Name())
	if e.IsDir() || !IsYAML(e.Name()) || name == "" {
		return false
	}
	if _, there := l.File(name + ".yaml"); there {
		return e.Name() == name+".yaml"
	}
	first := slices.IndexFunc(l.Entries, func(other fs.DirEntry) bool {
		return !other.IsDir() && IsYAML(other.Name()) && NameOf(other.Name()) == name
	})
	return l.Entries[first].Name() == e.Name()
}

// Walk lists a folder recursively. all has the entries by their paths from it. unusable are those that are neither files nor folders, with the reasons, by their
// paths in files. What could be listed before an error is returned with it.
func Walk(files fs.FS, dir string) (all map[string]fs.DirEntry, unusable map[string]string, err error) {
	all, unusable = map[string]fs.DirEntry{}, map[string]string{}
	inside := false
	err = fs.WalkDir(files, dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !inside { // The folder itself comes first. A hostile tree may also contain an entry ".".
			inside = true
			return nil
		}
		if name != dir {
			all[strings.TrimPrefix(name, dir+"/")] = e
		}
		if why := Unusable(e); why != "" {
			unusable[name] = why
			return SkipUnusable(e)
		}
		return nil
	})
	return all, unusable, err
}
