// Package commit writes to repositories: it makes commits of edits, and pushes them to a branch. If others pushed meanwhile, it makes the same
// edits on their commit, until the push succeeds. Only an edit of what another commit changed, too, is an error: nobody's change is undone.
package commit

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// Branch is a branch of a repository to which commits are pushed.
type Branch interface {
	// Name is the same for all that write to this branch with the same credentials: their commits are pushed together.
	Name() string
	// Fetch returns the newest commit.
	Fetch(ctx context.Context) (git.Commit, error)
	// Messages returns the messages of a commit and of those before it, as git.Store.Messages does.
	Messages(ctx context.Context, newest git.Commit, since string, most int) (map[string]string, error)
	// Push pushes commits as git.Store.Push does. Their branch is this one, or a new one.
	Push(ctx context.Context, p git.Proposed) (hashes []string, err error)
}

// Request is what to commit.
type Request struct {
	// ID names the request in the trailer of the commit, so that a commit is found from the log of who requested it. It is required. Requests
	// with the same ID are one request, and its first edits are made: whoever lets others choose the ID compares what they request.
	ID string
	// Title is the first line of the message, in the imperative. Body is optional.
	Title, Body string
	// Author and Committer are who requested the commit, and what makes it.
	Author, Committer draft.Person
	// Base are the files that the requester saw. An edit of what was changed since then is a conflict. Nil: those of the first fetched commit.
	Base *folder.Folder
	// Folder in the repository to which the paths of the edits are relative. "": its root.
	Folder string
	Edits  []Edit
	// Check, if set, is called before the commit is made, with the files before and after it, in Folder. Its error is that of the request, and nothing of it is pushed.
	Check func(before, after *folder.Folder) error
	// Alone, if set, is called when the commit is in the branch and nobody waited for it to the end, in a goroutine of its own.
	Alone func(Result)
	// Branch is pushed to. If New, it is created, for a pull request; git.ErrMoved means that it exists.
	Branch string
	New    bool
}

// Trailer is the key of the trailer with the ID of a request.
const Trailer = "Kubeop-Request"

// Result is what became of a request.
type Result struct {
	// Hash is that of the commit, also of an earlier one for the same ID; of the newest one if Unchanged.
	Hash string
	// Unchanged means that the newest commit has all that was requested, so nothing was pushed.
	Unchanged bool
	// Attempts is how many commits were made until one was pushed.
	Attempts int
}

// changesOf returns what a request changes in the newest files, after its Check. A panic of the check is an error, as those of edits are.
func changesOf(r Request, newest *folder.Folder) (all []draft.Change, err error) {
	defer func() { err = recovered(recover(), err) }()
	base, err := within(r.Base, r.Folder)
	if err != nil {
		return nil, err
	}
	files, err := within(newest, r.Folder)
	if err != nil {
		return nil, err
	}
	all, err = Changes(base, files, r.Edits)
	for i := range all {
		all[i].Path = path.Join(r.Folder, all[i].Path)
	}
	if err == nil && len(all) > 0 && r.Check != nil {
		err = r.check(newest, files, all)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// check calls Check. The files are made apart from those that are pushed, so that nothing of a refused commit is among these.
func (r Request) check(newest, before *folder.Folder, changes []draft.Change) error {
	apart := draft.New()
	if err := apart.Add(newest, draft.Commit{}, changes); err != nil {
		return failure.Because(ErrInvalidEdit, err, "%s", err)
	}
	after, err := within(newest.Over(apart)(apart.Commits[0].Tree), r.Folder)
	if err != nil {
		return err
	}
	return r.Check(before, after)
}

func within(files *folder.Folder, dir string) (*folder.Folder, error) {
	if dir == "" {
		return files, nil
	}
	sub, err := files.Sub(dir)
	if err != nil {
		return nil, failure.Because(ErrInvalidEdit, err, "the folder %s of the repository cannot be read: %s", dir, err)
	}
	return sub, nil
}

// Changes returns what edits change in the newest files, in the order of the paths; nothing if they have it all. base are the files that the
// requester saw. Errors: ErrConflict, ErrExists, ErrMissing, ErrInvalidEdit.
//
// A panic is an error: the parser reads files of tenants, and only the request fails that is about them.
func Changes(base, newest *folder.Folder, edits []Edit) (all []draft.Change, err error) {
	defer func() { err = recovered(recover(), err) }()
	for _, e := range edits {
		changes, err := e.changes(base, newest)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	slices.SortFunc(all, func(a, b draft.Change) int { return strings.Compare(a.Path, b.Path) })
	for i := range all[:max(len(all)-1, 0)] {
		if all[i].Path == all[i+1].Path {
			return nil, failure.New(ErrInvalidEdit, "%s is edited twice in one commit", all[i].Path)
		}
	}
	return all, nil
}

func recovered(cause any, err error) error {
	if cause != nil {
		return failure.New(ErrInvalidEdit, "the files of the edit cannot be handled: %v", cause)
	}
	return err
}

// message is the message of the commit.
func (r Request) message() string {
	text := strings.TrimSpace(r.Title) + "\n\n"
	if body := strings.TrimSpace(r.Body); body != "" {
		text += body + "\n\n"
	}
	return text + Trailer + ": " + r.ID + "\n"
}

// idIn returns the ID in the message of a commit; "" if it has none. Only the last paragraph has trailers, so a body cannot have that of another
// request.
func idIn(message string) string {
	message = strings.TrimSpace(message)
	for line := range strings.Lines(message[strings.LastIndex(message, "\n\n")+1:]) {
		if id, found := strings.CutPrefix(line, Trailer+": "); found {
			return strings.TrimSpace(id)
		}
	}
	return ""
}
