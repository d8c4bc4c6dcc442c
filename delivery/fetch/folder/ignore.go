package folder

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

const (
	// maxIgnoreLines bounds the patterns of one app: each is tried on each file.
	maxIgnoreLines = 100
	// maxIgnoreSteps bounds what that takes: for each try the length of the path, as often as the pattern has stars, and once. A step
	// is up to 200 ns.
	maxIgnoreSteps = 100_000_000
)

// Ignore leaves out the files and folders below folder that patterns name, in the syntax of gitignore(5). A link that is left
// out is as little there as a file. Without patterns it is files itself. It is for one reading at a time.
//
// Errors: ErrInvalid for a pattern that cannot be read, ErrTooLarge for more than 100 of them. Reading is ErrTooLarge once the
// patterns took 100 million steps.
func Ignore(files fs.FS, folder, patterns string) (fs.FS, error) {
	f := &filtered{files: files, folder: path.Clean(folder), known: map[tried]bool{}}
	for line := range strings.Lines(patterns) {
		rule, err := ignoreRule(strings.TrimRight(line, "\r\n"))
		if err != nil {
			return nil, err
		}
		if rule.match == nil {
			continue
		}
		if f.rules = append(f.rules, rule); len(f.rules) > maxIgnoreLines {
			return nil, failure.TooMany("the number of patterns in ignore", maxIgnoreLines)
		}
	}
	if len(f.rules) == 0 {
		return files, nil
	}
	return f, nil
}

// rule is one pattern.
type rule struct {
	match *regexp.Regexp
	// keep is set of a pattern that begins with "!", folders of one that ends with "/".
	keep, folders bool
	// stars are those in the line, and one.
	stars int
}

// ignoreRule reads a line. It becomes a regular expression, which takes no longer for a pattern that is made to take long.
func ignoreRule(line string) (rule, error) {
	var r rule
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, nil
	}
	pattern := line
	r.stars = strings.Count(line, "*") + 1
	pattern, r.keep = strings.CutPrefix(pattern, "!")
	pattern, r.folders = strings.CutSuffix(pattern, "/")
	if pattern == "" {
		return r, nil
	}
	begin := "^"
	if !strings.Contains(pattern, "/") {
		begin = "^(?:.*/)?"
	}
	var err error
	if r.match, err = regexp.Compile(begin + expressionOf(strings.TrimPrefix(pattern, "/")) + "$"); err != nil {
		return r, failure.New(failure.ErrInvalid, "the pattern %q of ignore cannot be read: write it as in a .gitignore", failure.Printable(line))
	}
	return r, nil
}

// expressionOf translates a pattern of gitignore(5).
func expressionOf(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); {
		rest, begins := pattern[i:], i == 0 || pattern[i-1] == '/'
		switch {
		case begins && strings.HasPrefix(rest, "**/"):
			out.WriteString("(?:.*/)?")
			i += 3
		case begins && rest == "**":
			out.WriteString(".+")
			i += 2
		case rest[0] == '*':
			out.WriteString("[^/]*")
			i++
		case rest[0] == '?':
			out.WriteString("[^/]")
			i++
		case rest[0] == '[':
			class, length := classOf(rest)
			out.WriteString(class)
			i += length
		case rest[0] == '\\' && len(rest) > 1:
			out.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			out.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	return out.String()
}

// classOf translates the set of characters that pattern begins with, and says how long it is. One that does not end is left to
// be refused.
func classOf(pattern string) (class string, length int) {
	i, begin := 1, "["
	if len(pattern) > 1 && (pattern[1] == '!' || pattern[1] == '^') {
		i, begin = 2, "[^/"
	}
	var inside strings.Builder
	for first := true; i < len(pattern) && (first || pattern[i] != ']'); first = false {
		text, length := memberOf(pattern[i:])
		inside.WriteString(text)
		i += length
	}
	if i >= len(pattern) {
		return "[", len(pattern)
	}
	return begin + inside.String() + "]", i + 1
}

// memberOf translates what text begins with inside a set: a class by its name, or a character.
func memberOf(text string) (member string, length int) {
	if strings.HasPrefix(text, "[:") && strings.Contains(text, ":]") {
		end := strings.Index(text, ":]") + len(":]")
		return text[:end], end
	}
	switch {
	case text[0] == '\\' && len(text) > 1:
		return text[:2], 2
	case strings.ContainsRune("[]^&", rune(text[0])):
		return `\` + text[:1], 1
	}
	return text[:1], 1
}

// filtered are files without those that are ignored.
type filtered struct {
	files  fs.FS
	folder string
	rules  []rule
	// known is what was decided of paths below the folder, and steps what that took.
	known map[tried]bool
	steps int
}

// tried is a path, as a folder or as something else.
type tried struct {
	path   string
	folder bool
}

var (
	_ fs.ReadDirFS  = (*filtered)(nil)
	_ fs.ReadFileFS = (*filtered)(nil)
	_ fs.StatFS     = (*filtered)(nil)
)

// ignored says whether something is left out. What is in a folder that is left out cannot be kept, as in Git.
func (f *filtered) ignored(name string, folder bool) (bool, error) {
	below, inside := name, true
	if f.folder != "." {
		below, inside = strings.CutPrefix(name, f.folder+"/")
	}
	if !inside || below == "." {
		return false, nil
	}
	for i, c := range below {
		if c != '/' {
			continue
		}
		if out, err := f.excluded(tried{below[:i], true}); out || err != nil {
			return out, err
		}
	}
	return f.excluded(tried{below, folder})
}

// excluded decides by the last pattern that matches, once for each path.
func (f *filtered) excluded(of tried) (bool, error) {
	if out, known := f.known[of]; known {
		return out, nil
	}
	out := false
	for _, r := range slices.Backward(f.rules) {
		if r.folders && !of.folder {
			continue
		}
		if f.steps += len(of.path) * r.stars; f.steps > maxIgnoreSteps {
			return false, failure.New(failure.ErrTooLarge, "to match the patterns of ignore with all paths takes more than the limit of %d steps, which are the letters of each path for each star of each pattern: write fewer patterns, or with fewer stars", maxIgnoreSteps)
		}
		if r.match.MatchString(of.path) {
			out = !r.keep
			break
		}
	}
	f.known[of] = out
	return out, nil
}

// seen is an error for what is left out.
func (f *filtered) seen(op, name string) error {
	if !fs.ValidPath(name) {
		return PathError(op, name, fs.ErrInvalid)
	}
	asFile, err := f.ignored(name, false)
	if err != nil {
		return PathError(op, name, err)
	}
	if asFile {
		return PathError(op, name, ErrNotExist)
	}
	asFolder, err := f.ignored(name, true)
	if err != nil {
		return PathError(op, name, err)
	}
	if asFolder {
		// Only as a folder: so it matters what it is.
		if about, err := fs.Lstat(f.files, name); err == nil && about.IsDir() {
			return PathError(op, name, ErrNotExist)
		}
	}
	return nil
}

// Open implements fs.FS.
func (f *filtered) Open(name string) (fs.File, error) {
	if err := f.seen("open", name); err != nil {
		return nil, err
	}
	file, err := f.files.Open(name)
	if err != nil {
		return nil, err
	}
	about, err := file.Stat()
	if err != nil || !about.IsDir() {
		return file, err
	}
	_ = file.Close()
	entries, err := f.ReadDir(name)
	return OpenFolder(about, entries), err
}

// ReadFile implements fs.ReadFileFS.
func (f *filtered) ReadFile(name string) ([]byte, error) {
	if err := f.seen("read", name); err != nil {
		return nil, err
	}
	return fs.ReadFile(f.files, name)
}

// Stat implements fs.StatFS.
func (f *filtered) Stat(name string) (fs.FileInfo, error) {
	if err := f.seen("stat", name); err != nil {
		return nil, err
	}
	return fs.Stat(f.files, name)
}

// ReadDir implements fs.ReadDirFS. The entries are sorted by name.
func (f *filtered) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.seen("readdir", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.files, name)
	if err != nil {
		return nil, err
	}
	var left []fs.DirEntry
	for _, e := range entries {
		out, err := f.ignored(path.Join(name, e.Name()), e.IsDir())
		if err != nil {
			return nil, PathError("readdir", name, err)
		}
		if !out {
			left = append(left, e)
		}
	}
	return left, nil
}
