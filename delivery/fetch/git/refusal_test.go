package git

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// closed is the input of a server that has ended.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.EOF }
func (closed) Close() error              { return nil }

func TestARefusalIsReadFromAServerThatEndsBeforeTheRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  string
		refused bool
		want    string
	}{
		"it says why":  {"0020ERR upload-pack: not our ref", true, "the server says: upload-pack: not our ref"},
		"it only ends": {"", false, "writing the request: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := &remote{limits: defaultLimits(), meter: func(r io.ReadCloser) io.ReadCloser { return r }}
			s := &sshSession{remote: r, stdin: closed{}, stdout: strings.NewReader(tc.answer)}
			request := packp.NewUploadPackRequest()
			request.Wants = []plumbing.Hash{plumbing.NewHash(strings.Repeat("ab", 20))}
			pack, err := s.upload(t.Context(), request)
			if pack != nil {
				t.Error("it returned a pack")
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, errRefused) != tc.refused {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
