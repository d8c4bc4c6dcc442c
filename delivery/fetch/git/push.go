package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// ErrMoved means that the branch is not at the commit on which the pushed one is based: fetch, and push again.
var ErrMoved = errors.New("the branch has another commit")

// ErrRefused means that the server refused the pushed commits, such as for a protected branch. The message says what the server says.
var ErrRefused = errors.New("the push was refused")

// Proposed are commits to push, each upon the one before.
type Proposed struct {
	// Upon is the parent of the first one, a commit that Fetch returned. Draft is made upon its files.
	Upon  Commit
	Draft *draft.Draft
	// Branch to push them to. It has to be at Upon; or it must not exist, if New is set.
	Branch string
	New    bool
}

// Push makes commits and pushes them to a branch of the source's repository, with the source's credentials: all of them or none. It returns
// their hashes. The branch is only ever moved forward, from the parent to the last commit, and never if it has another commit: then the error
// is ErrMoved.
//
// Other errors: ErrRefused, ErrTooLarge, ErrNotFound, ErrAuthentication, ErrInvalid; any other is transient, and then the commits may be
// pushed or not.
func (s *Store) Push(ctx context.Context, src Source, p Proposed) ([]string, error) {
	var pack bytes.Buffer
	hashes, err := p.Draft.Make(p.Upon.Hash)
	if err == nil {
		err = p.Draft.Pack(&pack)
	}
	if err != nil {
		return nil, fmt.Errorf("making commits for %s: %w", transport.SafeURL(src.URL), err)
	}
	_, err = transport.Within(ctx, s.limits.Timeouts, func(ctx context.Context) (struct{}, error) {
		to, err := s.repository(src).remote(src)
		if err != nil {
			return struct{}{}, err
		}
		to.service = receivePack
		return struct{}{}, to.pushPack(ctx, p, plumbing.NewHash(hashes[len(hashes)-1]), pack.Bytes())
	})
	if errors.Is(err, failure.ErrAuthentication) {
		err = fmt.Errorf("%w; to push, the credentials must also be allowed to write", err)
	}
	if err != nil {
		return nil, fmt.Errorf("pushing to %s of %s: %w", p.Branch, transport.SafeURL(src.URL), src.Auth.NameSecret(err))
	}
	return hashes, nil
}

// pushPack pushes a pack with a commit, and those that lead to it.
func (r *remote) pushPack(ctx context.Context, p Proposed, commit plumbing.Hash, pack []byte) error {
	to, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer to.Close()
	command := &packp.Command{Name: plumbing.NewBranchReferenceName(p.Branch), Old: plumbing.NewHash(p.Upon.Hash), New: commit}
	if p.New {
		command.Old = plumbing.ZeroHash
	}
	at := to.advertised().References[command.Name.String()]
	if at == commit {
		return nil // An earlier attempt pushed it, and its answer was lost.
	}
	if at != command.Old {
		return ErrMoved
	}
	request, muxed, err := pushRequest(to.advertised().Capabilities, command)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	request.Packfile = io.NopCloser(bytes.NewReader(pack))
	if err := request.Encode(&body); err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	answer, err := to.send(ctx, body.Bytes())
	if err != nil {
		return err
	}
	defer answer.Close()
	err = r.readReport(answer, muxed)
	if !errors.Is(err, ErrRefused) {
		return err
	}
	return r.moved(ctx, command, err)
}

// pushRequest makes the request to move a branch. muxed: the answer also has what the server says to people.
func pushRequest(server *capability.List, command *packp.Command) (request *packp.ReferenceUpdateRequest, muxed bool, err error) {
	request = packp.NewReferenceUpdateRequest()
	request.Commands = []*packp.Command{command}
	if !server.Supports(capability.ReportStatus) {
		return nil, false, failure.New(failure.ErrInvalid, "the Git server does not report whether a push succeeded")
	}
	muxed = server.Supports(capability.Sideband64k)
	err = request.Capabilities.Set(capability.ReportStatus)
	if err == nil && muxed {
		err = request.Capabilities.Set(capability.Sideband64k)
	}
	return request, muxed, err
}

// maxReport is how much of the answer to a push is read.
const maxReport = 1 * limit.MiB

// readReport reads whether the server took the commit.
func (r *remote) readReport(answer io.Reader, muxed bool) error {
	answer = limit.NewReader(answer, maxReport, failure.TooLarge("the answer to the push", maxReport))
	said := &limit.Beginning{Max: 4 * limit.KiB}
	if muxed {
		demuxed := sideband.NewDemuxer(sideband.Sideband64k, answer)
		demuxed.Progress = said
		answer = demuxed
	}
	report := packp.NewReportStatus()
	if err := report.Decode(answer); err != nil {
		return fmt.Errorf("reading the answer to the push: %w", err)
	}
	err := report.Error()
	if err == nil {
		return nil
	}
	why := err.Error()
	for _, status := range report.CommandStatuses {
		if status.Error() != nil {
			why = status.Status
		}
	}
	if words := few.Quote(r.auth.Redact(string(said.Bytes()))); words != "" {
		why += ": " + words
	}
	return failure.New(ErrRefused, "the server refused the push: %s", few.Quote(r.auth.Redact(why)))
}

// moved returns ErrMoved in place of a refusal if the branch got another commit meanwhile: servers say that in many ways.
func (r *remote) moved(ctx context.Context, command *packp.Command, refusal error) error {
	again, err := r.open(ctx)
	if err != nil {
		return refusal
	}
	defer again.Close()
	switch at := again.advertised().References[command.Name.String()]; at {
	case command.Old:
		return refusal
	case command.New:
		return nil
	default:
		return ErrMoved
	}
}
