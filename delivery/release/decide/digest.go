package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// digestLength keeps the digest within the length of a label value (63); 160 bits are enough against accidental collisions.
const digestLength = 40

// Digest returns the digest of a text as a label value.
func Digest(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])[:digestLength]
}

// Digests returns the digest of an input, and that of the trial: of the input, of what is allowed, and of how it is installed, upgraded and
// tested. It fails for an input that cannot be encoded as JSON.
func Digests(input any, allowance string, how v1alpha1.HelmActions) (digest, trial string, err error) {
	text, err := json.Marshal(input)
	if err != nil {
		return "", "", fmt.Errorf("encoding the values: %w", err)
	}
	digest = Digest(text)
	if text, err = json.Marshal(how); err != nil {
		return "", "", fmt.Errorf("encoding the actions: %w", err)
	}
	return digest, Digest(append([]byte(digest+allowance), text...)), nil
}
