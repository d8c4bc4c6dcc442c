package git

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/few"
)

// The transports are our own, with go-git's protocol messages. go-git's SSH reads ~/.ssh/config, uses an agent and cannot be interrupted
// during the handshake; its HTTP re-sends credentials by its own rules; both hide the server's capabilities (multi_ack, without which Azure
// DevOps refuses every fetch: go-git issue 64); and its Remote.Fetch cannot reliably fetch into a shallow store (issues 305 and 1443).

// decodeRefs reads the list of refs.
func (r *remote) decodeRefs(from io.Reader) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(limit.NewReader(from, r.limits.refs, failure.TooLarge("the list of the repository's refs", r.limits.refs)))
	var refused *pktline.ErrorLine
	switch {
	case errors.As(err, &refused):
		return nil, failure.New(failure.ErrNotFound, "the server says: %s", few.Quote(r.auth.Redact(refused.Text)))
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		return packp.NewAdvRefs(), nil
	case err != nil:
		return nil, fmt.Errorf("listing the refs: %w", err)
	}
	return refs, nil
}

// newRequest requests the wanted objects. haves are shallow commits that are in the store with their whole trees; depth 0 requests the
// whole history.
func newRequest(server *capability.List, wants, haves []plumbing.Hash, depth int) (*packp.UploadPackRequest, error) {
	request := packp.NewUploadPackRequest()
	request.Wants = wants
	asked := []capability.Capability{capability.OFSDelta, capability.NoProgress}
	for _, alternatives := range [][]capability.Capability{
		{capability.MultiACKDetailed, capability.MultiACK},
		{capability.Sideband64k, capability.Sideband},
	} {
		for _, c := range alternatives {
			if server.Supports(c) {
				asked = append(asked, c)
				break
			}
		}
	}
	if server.Supports(capability.Shallow) {
		asked = append(asked, capability.Shallow)
		request.Depth = packp.DepthCommits(depth)
		request.Haves, request.Shallows = haves, haves
	}
	if len(request.Haves) > 0 {
		// Without this capability git leaves nothing out of a shallow pack: it uses our objects only as bases of a thin pack.
		asked = append(asked, capability.ThinPack)
	}
	for _, c := range asked {
		if c != capability.Shallow && !server.Supports(c) {
			continue
		}
		if err := request.Capabilities.Set(c); err != nil {
			return nil, fmt.Errorf("asking for %s: %w", c, err)
		}
	}
	return request, nil
}

func encode(w io.Writer, request *packp.UploadPackRequest) error {
	if err := request.UploadRequest.Encode(w); err != nil {
		return fmt.Errorf("writing the request: wants: %w", err)
	}
	if err := request.UploadHaves.Encode(w, false); err != nil {
		return fmt.Errorf("writing the request: haves: %w", err)
	}
	if err := pktline.NewEncoder(w).EncodeString("done\n"); err != nil {
		return fmt.Errorf("writing the request: its end: %w", err)
	}
	return nil
}

// errRefused means that the server answered and refused the request.
var errRefused = errors.New("refused by the server")

// packOf reads the answer up to the beginning of the pack and returns the pack. Closing it closes the answer.
func (r *remote) packOf(answer io.ReadCloser, request *packp.UploadPackRequest) (io.ReadCloser, error) {
	response := packp.NewUploadPackResponse(request)
	answer = r.meter(answer)
	bounded := readCloser{limit.NewReader(answer, r.limits.pack, failure.TooLarge("the commit's pack", r.limits.pack)), answer}
	if err := response.Decode(bounded); err != nil {
		_ = answer.Close()
		var refused *pktline.ErrorLine
		if errors.As(err, &refused) {
			return nil, failure.New(errRefused, "the server says: %s", few.Quote(r.auth.Redact(refused.Text)))
		}
		return nil, fmt.Errorf("reading the server's answer: %w", err)
	}
	var pack io.Reader = response
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, response)
	}
	return readCloser{pack, answer}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}
