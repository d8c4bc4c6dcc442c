package decide

import (
	"crypto/sha256"
	"encoding/hex"
)

// digestLength keeps the digest within the length of a label value (63); 160 bits are enough against accidental collisions.
const digestLength = 40

// Digest returns the digest of a text as a label value.
func Digest(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])[:digestLength]
}
