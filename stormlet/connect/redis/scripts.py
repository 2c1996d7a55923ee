"""Scripts that the server runs, with nobody in between: what is done to an entry only if it is still ours.

``XCLAIM`` takes an entry from whoever has it. A consumer whose lease has run out must not renew what another has got
meanwhile; so the owner is asked, and the claim made, in one step.
"""

from __future__ import annotations

from typing import Final

_OURS: Final = """
local kept = {}
for at = 3, #ARGV do
  local entry = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[at], ARGV[at], 1, ARGV[2])[1]
  if entry then
    CLAIM
    kept[#kept + 1] = ARGV[at]
  end
end
return kept
"""
_XCLAIM: Final = "redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[at], "

RENEW: Final = _OURS.replace("CLAIM", _XCLAIM + "'JUSTID')")
"""Begin the leases of entries anew. Keys: stream; arguments: group, consumer, ids. Returns the ids that are ours."""

GIVE_BACK: Final = _OURS.replace("CLAIM", _XCLAIM + "'IDLE', 86400000, 'RETRYCOUNT', entry[4] - 1, 'JUSTID')")
"""Let anybody claim entries, with the counts of deliveries that they had before; as above."""

LEAVE: Final = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
  return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
return 0
"""
"""Delete a consumer that has nothing pending; with it what is pending would be lost. Keys: stream; arguments: group,
consumer."""
