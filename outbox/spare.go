package outbox

import bolt "go.etcd.io/bbolt"

// The bucket spare has nothing in it that is ever read. It takes up pages that are
// given back when the file cannot grow, because the disk is full, so that entries can
// still be removed. New entries are only taken while it is there.
//
// A removal writes a few pages anew before the old ones are free. Its pages can lie
// anywhere in the file: no node of the file's trees is longer than a page (see put),
// and the list of free pages, which may be longer, can be left out.
const (
	spareName = "spare"

	// sparePages is how many pages it has: enough for some two thousand notes, which
	// grow the file although they are about entries that it holds. More would only
	// make the file larger.
	sparePages = 256
)

// setAside sees to it that the bucket spare is there.
func setAside(tx *bolt.Tx) error {
	if tx.Bucket([]byte(spareName)) != nil {
		return nil
	}
	// A key that earlier versions used for this, and that one of them may have
	// left behind.
	if err := tx.Bucket([]byte("notes")).Delete([]byte(spareName)); err != nil {
		return err
	}
	b, err := tx.CreateBucket([]byte(spareName))
	if err != nil {
		return err
	}
	b.FillPercent = 1
	value := make([]byte, quarter(tx))
	for i := range uint64(4 * sparePages) {
		if err := b.Put(key(i), value); err != nil {
			return err
		}
	}
	return nil
}

// giveBack frees the pages of the bucket spare.
func giveBack(tx *bolt.Tx) error {
	if tx.Bucket([]byte(spareName)) == nil {
		return nil
	}
	return tx.DeleteBucket([]byte(spareName))
}

// quarter is how long a record or note may be so that four of them fit on a page of a
// bucket: a page has a header of 16 bytes, and so has each of its elements, which have
// a key of eight bytes.
func quarter(tx *bolt.Tx) int { return (tx.DB().Info().PageSize-16)/4 - 16 - 8 }

// squeeze is transact for a write that does not make the file larger, and that failed
// because there was no room for what it writes anew. First it waits for readers, which
// keep pages from being used again. If that is not enough, it gives the bucket spare
// back. Its commits leave out the list of free pages, which has to lie in one piece:
// each of them then needs single pages only, and one to give spare back, which the
// commit before it has freed.
func (f *file) squeeze(one []*write) error {
	f.readers.Lock()
	defer f.readers.Unlock()
	if _, err := f.transact(one); err == nil {
		return nil
	}
	f.db.NoFreelistSync = true
	_, err := f.transact([]*write{{fn: giveBack}})
	if err == nil {
		_, err = f.transact(one)
	}
	f.db.NoFreelistSync = false
	// Without the list the next open takes longer, and finds damage to the file less
	// gently. So it is written again as soon as it fits.
	_, _ = f.transact([]*write{{fn: func(*bolt.Tx) error { return nil }}})
	return err
}
